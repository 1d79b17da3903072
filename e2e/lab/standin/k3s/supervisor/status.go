package supervisor

import (
	"encoding/json"
	"net/http"
)

// status is a Kubernetes Status as the supervisor writes it: kind without
// apiVersion.
type status struct {
	Kind     string   `json:"kind"`
	Metadata struct{} `json:"metadata"`
	Status   string   `json:"status"`
	Message  string   `json:"message"`
	Reason   string   `json:"reason"`
	Code     int      `json:"code"`
}

func writeStatus(w http.ResponseWriter, code int, message string) {
	text, _ := json.MarshalIndent(status{
		Kind: "Status", Status: "Failure", Message: message, Reason: reason(code), Code: code,
	}, "", "  ")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text)
}

func reason(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "BadRequest"
	case http.StatusUnauthorized:
		return "Unauthorized"
	case http.StatusForbidden:
		return "Forbidden"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	}
	return "InternalError"
}
