// Lets Go's net/http make refused calls with late bodies, each followed by one that must work, on connections that are
// kept.
//
// Takes the server's address, the path of the call that works and how many calls to make; the keys are in GOOD_KEY and
// SPENT_KEY, and the calls in the file that CALLS names. Fails at the first call that is not answered as it should be.
package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

type refusal struct {
	Method, Path, Key string
	Status            int
}

var (
	keys  = map[string]string{"good": os.Getenv("GOOD_KEY"), "spent": os.Getenv("SPENT_KEY")}
	calls struct {
		Refused []refusal
		Body    string
		Next    struct {
			Body   string
			Status int
		}
	}
)

// A body whose first piece comes when the refusal is ready.
type late struct {
	text  *strings.Reader
	begun bool
}

func (body *late) Read(buffer []byte) (int, error) {
	if !body.begun {
		body.begun = true
		time.Sleep(time.Millisecond)
	}
	return body.text.Read(buffer)
}

// A body that breaks off when some of it has been sent.
type broken struct{ begun bool }

func (body *broken) Read(buffer []byte) (int, error) {
	if body.begun {
		time.Sleep(time.Millisecond)
		return 0, errors.New("given up")
	}
	body.begun = true
	return copy(buffer, "{"), nil
}

func request(client *http.Client, method, url, key string, body io.Reader) (int, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return 0, err
	}
	request.Header.Set("content-type", "application/json")
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// Go tries a call again by itself that it takes for harmless; it does not with POST.
func following(client *http.Client, url string, number int) {
	status, err := request(client, "POST", url+os.Args[2], keys["good"], strings.NewReader(calls.Next.Body))
	expect(status == calls.Next.Status, "after call %d: %d %v", number, status, err)
}

func expect(fine bool, format string, about ...any) {
	if !fine {
		fmt.Fprintf(os.Stderr, format+"\n", about...)
		os.Exit(1)
	}
}

func run(client *http.Client, url string, count int) {
	for number := 0; number < count; number++ {
		call := calls.Refused[number%len(calls.Refused)]
		var body io.Reader = strings.NewReader(calls.Body)
		if number%2 == 1 {
			body = &late{text: strings.NewReader(calls.Body)}
		}
		if number%50 == 49 {
			// More than is thrown away: over HTTP/1.1 the answer says that the connection ends.
			body = strings.NewReader(strings.Repeat(" ", 400_000))
		}
		status, err := request(client, call.Method, url+call.Path, keys[call.Key], body)
		expect(status == call.Status, "call %d, %s %s: %d %v", number, call.Method, call.Path, status, err)
		following(client, url, number)
		if number%50 == 24 {
			_, err := request(client, "POST", url+"/api/v1/mailboxes", "", &broken{})
			expect(err != nil, "a body that breaks off was answered")
			following(client, url, number)
		}
	}
}

func main() {
	text, err := os.ReadFile(os.Getenv("CALLS"))
	expect(err == nil, "%v", err)
	expect(json.Unmarshal(text, &calls) == nil, "the calls cannot be read")
	count, err := strconv.Atoi(os.Args[3])
	expect(err == nil, "%v", err)
	plain := &http.Transport{}
	multiplexed := &http2.Transport{
		AllowHTTP: true,
		DialTLS: func(network, address string, _ *tls.Config) (net.Conn, error) {
			return net.Dial(network, address)
		},
	}
	for _, one := range []struct {
		name      string
		transport http.RoundTripper
	}{{"HTTP/1.1", plain}, {"HTTP/2", multiplexed}} {
		begun := time.Now()
		run(&http.Client{Transport: one.transport, Timeout: 20 * time.Second}, os.Args[1], count)
		fmt.Printf("%s net/http, %s: %d refused, %.1f s\n", runtime.Version(), one.name, count, time.Since(begun).Seconds())
	}
}
