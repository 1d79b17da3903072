package supervisor

import (
	"crypto/tls"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/sirupsen/logrus"
)

// Proxy passes requests on to the API server at target. A client certificate
// does not survive the second TLS connection, so its user goes along in the
// request headers, signed for by the front-proxy client certificate; tokens
// pass as they are.
func (s *Supervisor) Proxy(target *url.URL, client *tls.Config) http.Handler {
	plain := transport(client, true)
	upgrade := transport(client, false)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
			for name := range r.Out.Header {
				if strings.HasPrefix(strings.ToLower(name), "x-remote-") {
					r.Out.Header.Del(name)
				}
			}
			if cert := verified(r.In, s.ClientCA.PEM); cert != nil {
				r.Out.Header.Set("X-Remote-User", cert.Subject.CommonName)
				r.Out.Header["X-Remote-Group"] = cert.Subject.Organization
			}
		},
		FlushInterval: -1, // watches and logs are streams
		Transport:     choose{plain, upgrade},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				logrus.Debugf("Proxy of %s %s: %v", r.Method, r.URL.Path, err)
				writeStatus(w, http.StatusServiceUnavailable, "apiserver not ready")
			}
		},
	}
}

// choose sends upgrades (exec, attach, port-forward) over HTTP/1.1, which
// alone can carry them, and the rest over HTTP/2.
type choose struct{ plain, upgrade *http.Transport }

func (c choose) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return c.upgrade.RoundTrip(r)
	}
	return c.plain.RoundTrip(r)
}

func transport(client *tls.Config, http2 bool) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:     client.Clone(),
		ForceAttemptHTTP2:   http2,
		MaxIdleConnsPerHost: 100,
		DisableCompression:  true,
	}
	if !http2 {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	return t
}
