// Writes a small execution trace: `record FILE` one with some of everything, `record FILE FAULT`
// one of a program with a fault. It is built with each version of Go whose traces tacho reads; see
// ../README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"time"
)

type account struct {
	mu      sync.Mutex
	balance int
}

// slowly holds the lock while it sleeps.
func (a *account) slowly() {
	a.mu.Lock()
	defer a.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	a.balance++
}

func (a *account) deposit() {
	a.mu.Lock()
	a.balance++
	a.mu.Unlock()
}

func contend(a *account) {
	var all sync.WaitGroup
	all.Add(5)
	go func() {
		defer all.Done()
		a.slowly()
	}()
	time.Sleep(time.Millisecond)
	for i := 0; i < 4; i++ {
		go func() {
			defer all.Done()
			a.deposit()
		}()
	}
	all.Wait()
}

func talk(ctx context.Context) {
	requests, answers := make(chan int), make(chan int, 1)
	go func() {
		for r := range requests {
			answers <- 2 * r
		}
		close(answers)
	}()
	for i := 0; i < 20; i++ {
		trace.WithRegion(ctx, "ask", func() {
			requests <- i
			<-answers
		})
	}
	close(requests)
	trace.Logf(ctx, "talk", "asked %d times", 20)
}

var sink [][]byte

func allocate() {
	for i := 0; i < 64; i++ {
		sink = append(sink, make([]byte, 16<<10))
	}
	runtime.GC()
	sink = nil
}

func spin(d time.Duration) (n int) {
	for begun := time.Now(); time.Since(begun) < d; {
		n++
	}
	return n
}

func everything(out io.Writer) {
	ctx, task := trace.NewTask(context.Background(), "all")
	contend(&account{})
	talk(ctx)
	allocate()
	fmt.Fprint(out, spin(60*time.Millisecond))
	task.End()
}

func main() {
	out, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	profile, err := os.Create(os.DevNull)
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.StartCPUProfile(profile); err != nil {
		log.Fatal(err)
	}
	if err := trace.Start(out); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 2 {
		faults[os.Args[2]]()
	} else {
		everything(profile)
	}
	trace.Stop()
	pprof.StopCPUProfile()
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}
