// A number-guessing service over HTTP, for bench/beside.py.
//
//	beside PORT [record]
//
// GET /guess?number=N says whether N is the number that it thought of, and counts the guesses of
// each number. With "record" Go's flight recorder keeps the last second, in up to 3 MB. Every answer
// is of the same length. Ends on SIGTERM.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

const numbers = 100

type game struct {
	mutex   sync.Mutex
	guesses [numbers]int
	secret  int
}

func (g *game) guess(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.FormValue("number"))
	if err != nil || number < 0 || number >= numbers {
		http.Error(w, "number: 0 to 99", http.StatusBadRequest)
		return
	}
	g.mutex.Lock()
	g.guesses[number]++
	count := g.guesses[number]
	g.mutex.Unlock()
	fmt.Fprintf(w, "%2d guessed %12d times: %5t\n", number, count, number == g.secret)
}

func record() {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: time.Second, MaxBytes: 3 << 20})
	if err := recorder.Start(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: beside PORT [record]")
	}
	if len(os.Args) > 2 && os.Args[2] == "record" {
		record()
	}
	g := &game{secret: 42}
	http.HandleFunc("/guess", g.guess)
	log.Fatal(http.ListenAndServe(net.JoinHostPort("127.0.0.1", os.Args[1]), nil))
}
