package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"time"
)

const window = 800 * time.Millisecond

var faults = map[string]func(){
	"leak":          leak,
	"downstream":    downstream,
	"stops":         stops,
	"oversubscribe": oversubscribe,
	"healthy":       healthy,
}

// leak starts goroutines that wait for what never comes.
func leak() {
	never := make(chan int)
	for begun := time.Now(); time.Since(begun) < window; time.Sleep(2 * time.Millisecond) {
		go func() {
			<-never
		}()
	}
}

func serve(h http.HandlerFunc) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, h)
	return "http://" + l.Addr().String() + "/"
}

func ask(address string) {
	answer, err := http.Get(address)
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

// downstream asks a service that takes its time.
func downstream() {
	address := serve(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(120 * time.Millisecond)
	})
	for begun := time.Now(); time.Since(begun) < window; {
		ask(address)
	}
}

// stops stops the world over and over.
func stops() {
	var stats runtime.MemStats
	for begun := time.Now(); time.Since(begun) < window; time.Sleep(4 * time.Millisecond) {
		for i := 0; i < 20; i++ {
			runtime.ReadMemStats(&stats)
		}
	}
}

// oversubscribe has far more to do than there are CPUs.
func oversubscribe() {
	together(40, func() {
		spin(4 * time.Millisecond)
		time.Sleep(time.Millisecond)
	})
}

// together does something in so many goroutines, over and over.
func together(count int, what func()) {
	done := make(chan int)
	for i := 0; i < count; i++ {
		go func() {
			for begun := time.Now(); time.Since(begun) < window; {
				what()
			}
			done <- 0
		}()
	}
	for i := 0; i < count; i++ {
		<-done
	}
}

func healthy() {
	address := serve(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	})
	for begun := time.Now(); time.Since(begun) < window; time.Sleep(5 * time.Millisecond) {
		ask(address)
	}
}

// What follows came later: the lines above are those of the traces.
func init() {
	faults["background"] = background
}

// background asks a slow service now and then, by itself, while others are served at once.
func background() {
	slow := serve(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(102 * time.Millisecond)
	})
	go func() {
		for {
			ask(slow)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	healthy()
}
