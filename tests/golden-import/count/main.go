// Counts what Go's own reader sees in execution traces: `count FILE...` prints an object for each,
// with the names that tacho gives what becomes of these events.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"golang.org/x/exp/trace"
)

// goroutine counts a change of the state of a goroutine.
func goroutine(counts map[string]int, inCall map[trace.GoID]bool, id trace.GoID, from, to trace.GoState) {
	switch {
	case from == to:
		return
	case from == trace.GoUndetermined && to == trace.GoWaiting:
		counts["task-waits"]++
	case from == trace.GoNotExist && to == trace.GoRunnable:
		counts["spawn"]++
		counts["wake"]++
	case from == trace.GoNotExist && to == trace.GoWaiting:
		counts["spawn"]++
	case from == trace.GoRunnable && to == trace.GoRunning:
		counts["poll-begin"]++
	case from == trace.GoRunning && to == trace.GoWaiting:
		counts["task-waits"]++
	case from == trace.GoWaiting && to == trace.GoRunnable,
		from == trace.GoRunning && to == trace.GoRunnable:
		counts["wake"]++
	case from == trace.GoRunning && to == trace.GoSyscall:
		inCall[id] = true
	case from == trace.GoSyscall && to == trace.GoRunning:
		if inCall[id] {
			counts["call"]++
		}
		delete(inCall, id)
	case from == trace.GoSyscall && to == trace.GoRunnable:
		counts["wake"]++
		delete(inCall, id)
	}
}

func count(path string) (map[string]int, error) {
	counts := map[string]int{"spawn": 0, "wake": 0, "poll-begin": 0, "task-waits": 0, "call": 0,
		"sample": 0, "log": 0, "counter": 0, "async-begin": 0, "async-end": 0}
	inCall := map[trace.GoID]bool{}
	tasks := map[trace.TaskID]bool{}
	regions := map[trace.GoID]int{}
	open := map[string]bool{}
	calling := map[trace.ProcID]bool{}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader, err := trace.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		e, err := reader.ReadEvent()
		if err == io.EOF {
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		switch e.Kind() {
		case trace.EventMetric:
			counts["counter"]++
		case trace.EventStackSample:
			if e.Stack() != trace.NoStack {
				counts["sample"]++
			}
		case trace.EventLog:
			counts["log"]++
		case trace.EventRangeBegin, trace.EventRangeActive:
			r := e.Range()
			key := fmt.Sprint(r.Name, r.Scope)
			// One that was there before has no beginning.
			if e.Kind() == trace.EventRangeBegin {
				counts["async-begin"]++
				open[key] = true
			}
		case trace.EventRangeEnd:
			r := e.Range()
			key := fmt.Sprint(r.Name, r.Scope)
			if open[key] {
				counts["async-end"]++
			}
			delete(open, key)
		case trace.EventTaskBegin:
			counts["async-begin"]++
			tasks[e.Task().ID] = true
		case trace.EventTaskEnd:
			if tasks[e.Task().ID] {
				counts["async-end"]++
			}
			delete(tasks, e.Task().ID)
		case trace.EventRegionBegin:
			counts["async-begin"]++
			regions[e.Goroutine()]++
		case trace.EventRegionEnd:
			if regions[e.Goroutine()] > 0 {
				counts["async-end"]++
				regions[e.Goroutine()]--
			}
		case trace.EventStateTransition:
			st := e.StateTransition()
			switch st.Resource.Kind {
			case trace.ResourceGoroutine:
				from, to := st.Goroutine()
				goroutine(counts, inCall, st.Resource.Goroutine(), from, to)
				// Also where it goes to: a goroutine that is in a call may lose its P.
				calling[e.Proc()] = from == trace.GoRunning && to == trace.GoSyscall
			case trace.ResourceProc:
				from, to := st.Proc()
				if from == trace.ProcRunning && to == trace.ProcIdle && calling[st.Resource.Proc()] {
					counts["task-waits"]++
				}
				delete(calling, st.Resource.Proc())
			}
		}
	}
}

func main() {
	for _, path := range os.Args[1:] {
		counts, err := count(path)
		if err != nil {
			log.Fatal(path, ": ", err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(counts); err != nil {
			log.Fatal(err)
		}
	}
}
