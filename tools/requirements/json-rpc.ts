import { section } from './requirement.ts'

export const JSON_RPC = section('RPC', 'specification, "JSON-RPC request", "JSON-RPC response" and "JSON-RPC codes"', [
  'jsonrpc must equal 2.0; anything else is -32600',
  'id is an integer or a string and is echoed in the response',
  'a missing or empty method is -32600',
  'params is an object',
  'success carries jsonrpc, id and result; failure carries jsonrpc, id and error with an integer code and a message',
  'malformed JSON is -32700',
  'a Content-Type other than application/json is -32700',
  'a server-side failure is -32603',
  'a caller who cannot be authenticated gets HTTP 200 with -32010 `Authentication failed`',
])
