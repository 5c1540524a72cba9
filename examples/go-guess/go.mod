module tacho/examples/go-guess

go 1.25
