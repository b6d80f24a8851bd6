import { expect, test } from 'vitest'

import { CORS_DEFAULTS, JSON_RPC_CODES, SSE_KEEPALIVE_MS } from '../src/index.ts'
import { LOCAL_HOSTS, MCP_LOCAL_HOSTS } from '../src/internal.ts'

test('JSON-RPC codes - the numbers are the specification’s', () => {
  expect(JSON_RPC_CODES).toEqual({
    PARSE_ERROR: -32700,
    INVALID_REQUEST: -32600,
    METHOD_NOT_FOUND: -32601,
    INVALID_PARAMS: -32602,
    INTERNAL_ERROR: -32603,
    AGENT_TIMEOUT: -32001,
    AGENT_NOT_FOUND: -32002,
    AGENT_UNAVAILABLE: -32003,
    INVALID_RESPONSE: -32004,
    AUTHENTICATION_FAILED: -32010,
    FORBIDDEN: -32011,
  })
})

test('CORS - the defaults are the specification’s table', () => {
  expect(CORS_DEFAULTS).toEqual({
    allowOrigins: ['*'],
    allowMethods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
    allowHeaders: [
      'Authorization',
      'Content-Type',
      'MCP-Protocol-Version',
      'MCP-Session-Id',
      'Last-Event-ID',
      'Accept',
    ],
    exposeHeaders: ['MCP-Session-Id', 'MCP-Protocol-Version'],
    allowCredentials: false,
    maxAge: 86_400,
  })
})

test('S6 - the hosts that auto trusts are the specification’s', () => {
  expect(LOCAL_HOSTS).toEqual(['localhost', '127.0.0.1'])
  expect(MCP_LOCAL_HOSTS).toEqual(['::1', '[::1]', '0.0.0.0'])
})

test('SSE - keepalive is every 30 seconds', () => {
  expect(SSE_KEEPALIVE_MS).toBe(30_000)
})
