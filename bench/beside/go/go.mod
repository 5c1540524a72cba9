module beside

go 1.25
