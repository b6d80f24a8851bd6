import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { ANONYMOUS } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'

import type { AuthenticationRequest, Authenticator } from '../src/index.ts'
import { authenticate, AuthenticationError, readRefusedId } from '../src/index.ts'

const failure = new AuthenticationError('no token')

test('authentication - an authenticator that answers at once is not waited for, one that takes its time is', async () => {
  const answers: Record<string, Authenticator['authenticate']> = {
    verified: () => ANONYMOUS,
    'verified later': () => Promise.resolve(ANONYMOUS),
    refused: () => {
      throw failure
    },
    'refused later': () => Promise.reject(failure),
  }
  const heard = new Map<string, unknown>()
  const server = createServer((request, response) => {
    for (const [name, answer] of Object.entries(answers)) {
      authenticate(
        {
          authenticate: (asked: AuthenticationRequest) => (
            heard.set(`${name}: asked`, asked === request),
            answer(asked)
          ),
        },
        request,
        (identity) => heard.set(name, identity),
        (cause) => heard.set(name, cause),
      )
    }
    heard.set(
      'at once',
      [...heard.keys()].filter((name) => !name.endsWith('asked')),
    )
    setImmediate(() => response.end())
  })
  await fetch(await open(server))
  expect(Object.fromEntries(heard)).toMatchObject({
    'at once': ['verified', 'refused'],
    verified: ANONYMOUS,
    'verified later': ANONYMOUS,
    refused: failure,
    'refused later': failure,
    'verified: asked': true,
  })
})

test('S5 - of a refused request only the id is read, from at most 64 KiB of a POST that is not encoded', async () => {
  const server = createServer((request, response) =>
    readRefusedId(request, (id, bodyRead) => {
      response.setHeader('Connection', 'close')
      response.end(JSON.stringify([id ?? null, bodyRead]))
    }),
  )
  const url = await open(server)
  const ask = async (init: RequestInit): Promise<unknown> => (await fetch(url, init)).json()
  const body = '{"jsonrpc":"2.0","id":18446744073709551616,"method":"m"}'
  expect(await ask({ method: 'POST', body })).toEqual(['18446744073709551616', true])
  expect(await ask({ method: 'POST', body: 'no JSON' })).toEqual([null, true])
  expect(await ask({ method: 'POST', body: `${body}${' '.repeat(65_536)}` })).toEqual([null, false])
  expect(await ask({ method: 'POST', body, headers: { 'content-encoding': 'identity' } })).toEqual([null, false])
  expect(await ask({})).toEqual([null, false])
})

async function open(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
