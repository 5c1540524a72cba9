// A number-guessing server with a fault: while it reports what was guessed, guesses wait.
//
// Go's own FlightRecorder runs all the time. The first answer that takes too long has its window
// written to a file, which tacho opens as it is:
//
//	go run . -o guess.trace
//	tacho report guess.trace
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

const numbers = 100

// A counter counts how often each number was guessed.
type counter struct {
	mu    sync.Mutex
	count [numbers]int
}

func (c *counter) guessed(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[n]++
}

// sendReport tells the collector what was guessed. The fault: it keeps the lock while it waits for
// the answer.
func (c *counter) sendReport(collector string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := json.Marshal(c.count)
	if err != nil {
		return err
	}
	answer, err := http.Post(collector, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// A snapshot is taken once, of the first slow answer.
type snapshot struct {
	recorder *trace.FlightRecorder
	path     string
	once     sync.Once
	done     chan error
}

func (s *snapshot) take() {
	s.once.Do(func() {
		go func() {
			file, err := os.Create(s.path)
			if err == nil {
				_, err = s.recorder.WriteTo(file)
			}
			if err == nil {
				err = file.Close()
			}
			s.done <- err
		}()
	})
}

type server struct {
	counter counter
	target  int
	slow    time.Duration
	snap    *snapshot
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	guess, err := strconv.Atoi(r.URL.Query().Get("guess"))
	if err != nil || guess < 0 || guess >= numbers {
		http.Error(w, "guess a number from 0 to 99", http.StatusBadRequest)
		return
	}
	s.counter.guessed(guess)
	fmt.Fprintln(w, guess == s.target)
	if time.Since(begun) > s.slow {
		s.snap.take()
	}
}

// serve answers on a free port of this machine; it returns the address.
func serve(h http.Handler) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, h)
	return "http://" + l.Addr().String() + "/"
}

// play guesses numbers until the program ends.
func play(address string) {
	for {
		answer, err := http.Get(fmt.Sprintf("%s?guess=%d", address, rand.IntN(numbers)))
		if err != nil {
			log.Print(err)
			return
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		time.Sleep(2 * time.Millisecond)
	}
}

func main() {
	path := flag.String("o", "guess.trace", "file for the trace")
	players := flag.Int("players", 8, "how many guess at the same time")
	slow := flag.Duration("slow", 100*time.Millisecond, "an answer that takes longer is slow")
	answers := flag.Duration("collector", 300*time.Millisecond, "how long the collector takes")
	every := flag.Duration("every", 600*time.Millisecond, "time between two reports")
	flag.Parse()

	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{
		MinAge:   2 * time.Second,
		MaxBytes: 4 << 20,
	})
	if err := recorder.Start(); err != nil {
		log.Fatal(err)
	}
	snap := &snapshot{recorder: recorder, path: *path, done: make(chan error, 1)}
	s := &server{target: rand.IntN(numbers), slow: *slow, snap: snap}
	address := serve(s)
	collector := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(*answers)
	}))
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = *players
	for range *players {
		go play(address)
	}
	go func() {
		for range time.Tick(*every) {
			if err := s.counter.sendReport(collector); err != nil {
				log.Print(err)
			}
		}
	}()
	if err := <-snap.done; err != nil {
		log.Fatal(err)
	}
	log.Printf("an answer took more than %v: see %s", *slow, *path)
}
