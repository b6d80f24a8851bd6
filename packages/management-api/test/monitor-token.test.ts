import type { AuthenticationRequest, Authenticator } from '@signalbox/http-kit'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'

import { bearer, manage, tokens } from './management-server.ts'

interface Opened {
  /** The HTTP status of a refusal, or the selected subprotocol. */
  readonly end: number | string
}

function open(url: string, protocols: readonly string[], headers: Record<string, string> = {}): Promise<Opened> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/monitor`, [...protocols], { headers })
  onTestFinished(() => socket.terminate())
  return new Promise((resolve) => {
    socket.on('error', () => {})
    socket.once('open', () => resolve({ end: socket.protocol }))
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => resolve({ end: statusCode }))
  })
}

const MONITOR = 'signalbox.monitor'
const token = (text: string) => `signalbox.bearer.${text}`

/** Tokens of subprotocols have no colon, so the role is after a dash. */
function dashed(): Authenticator {
  const authenticator = tokens()
  return {
    authenticate(request: AuthenticationRequest) {
      const { authorization } = request.headers
      if (authorization === undefined) return authenticator.authenticate(request)
      return authenticator.authenticate({ ...request, headers: { authorization: authorization.replace('-', ':') } })
    },
  }
}

test('MGMT-5, MGMT-18 - a browser opens the monitor with its token as a subprotocol', async () => {
  const { url } = await manage({ authenticator: dashed() })
  expect(await open(url, [MONITOR, token('a-ReadOnly')])).toEqual({ end: MONITOR })
  expect(await open(url, [token('a-ReadOnly'), MONITOR])).toEqual({ end: MONITOR })
  expect(await open(url, [MONITOR])).toEqual({ end: 401 })
  expect(await open(url, [MONITOR, token('!')])).toEqual({ end: 401 })
  expect(await open(url, [MONITOR, token('a')])).toEqual({ end: 403 })
})

test('MGMT-5 - the token of a subprotocol is never in the answer', async () => {
  const { url } = await manage({ authenticator: dashed() })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/monitor`, [MONITOR, token('a-ReadOnly')])
  onTestFinished(() => socket.terminate())
  const head = await new Promise<string>((resolve) =>
    socket.once('upgrade', ({ rawHeaders }) => resolve(rawHeaders.join('\n'))),
  )
  expect(head).toContain(MONITOR)
  expect(head).not.toContain('a-ReadOnly')
})

test('MGMT-5 - subprotocols without a token select the first one, or that of the monitor', async () => {
  const { url } = await manage()
  expect(await open(url, ['x', 'y'])).toEqual({ end: 'x' })
  expect(await open(url, ['x', MONITOR])).toEqual({ end: MONITOR })
  expect(await open(url, [])).toEqual({ end: '' })
})

test('MGMT-2 - a token of a subprotocol counts only for the monitor', async () => {
  const { get } = await manage({ authenticator: dashed() })
  const { status } = await get('/api/snapshot', { 'sec-websocket-protocol': token('a-ReadOnly') })
  expect(status).toBe(401)
})

test('MGMT-2 - an Authorization header and a token of a subprotocol are two credentials', async () => {
  let seen: readonly string[] = []
  const { url } = await manage({
    authenticator: {
      authenticate(request) {
        seen = request.rawHeaders.filter((_, i) => i % 2 === 0).filter((name) => /^authorization$/i.test(name))
        return tokens().authenticate(request)
      },
    },
  })
  await open(url, [MONITOR, token('b')], bearer('a:ReadOnly'))
  expect(seen).toHaveLength(2)
})
