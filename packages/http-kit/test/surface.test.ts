import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import type { Route, SurfaceOptions } from '../src/index.ts'
import { AdmissionControl, anonymousAuthenticator, CallEnded, Surface } from '../src/index.ts'
import { PlainExchange } from './support/plain-surface.ts'

type PlainRoute = Route<PlainExchange, string>

/** Answers errors with a `known` text in the protocol; any other error is a bug. */
class StrictExchange extends PlainExchange {
  override answerThrown(error: unknown): void {
    if (error instanceof CallEnded) this.answer(`ended: ${error.reason}`)
    else if (error instanceof RangeError) this.answer(`known: ${error.message}`)
    else throw error
  }
}

async function open(
  routes: Readonly<Record<string, PlainRoute | readonly string[]>>,
  options: Partial<SurfaceOptions> = {},
) {
  const reported: unknown[] = []
  const surface = new Surface({
    authenticator: anonymousAuthenticator,
    trustedOrigins: 'auto',
    hooks: { failed: (error) => reported.push(error) },
    ...options,
  })
  const server = await testServer((request, response) =>
    surface.serve(new StrictExchange(request, response, undefined), routes[request.url ?? '']),
  )
  const { port } = server
  const ask = async (path: string, body?: string): Promise<string> => {
    const init = body === undefined ? {} : { method: 'POST', body }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
    return `${response.status} ${(await response.text()).trim()}`
  }
  return { surface, port, ask, reported }
}

const echo: PlainRoute = {
  accept: () => 100_000,
  *read(_call, body) {
    yield
    return body.toString()
  },
  run: ({ exchange }, text) => exchange.answer(text ?? 'no body'),
}

test('surface - a route accepts the head, reads the body and answers', async () => {
  const { ask, port } = await open({
    '/echo': echo,
    '/none': { ...echo, accept: () => undefined },
    '/post': ['POST', 'PUT'],
  })
  expect(await ask('/echo', 'hello')).toBe('200 hello')
  expect(await ask('/echo', 'x'.repeat(90_000))).toBe(`200 ${'x'.repeat(90_000)}`)
  expect(await ask('/none', 'dropped')).toBe('200 no body')
  expect(await ask('/echo', 'x'.repeat(100_001))).toMatch(/^413/)
  expect(await ask('/unknown')).toBe('404 404 page not found')
  const other = await fetch(`http://127.0.0.1:${port}/post`)
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST, PUT'])
})

test.each<[step: string, route: PlainRoute]>([
  [
    'accept',
    {
      accept: () => {
        throw new RangeError('refused')
      },
      run() {},
    },
  ],
  [
    'read',
    {
      ...echo,
      *read() {
        yield
        throw new RangeError('refused')
      },
    },
  ],
  ['run', { run: () => Promise.reject(new RangeError('refused')) }],
])('surface - an error of the protocol in %s is answered and not reported', async (_step, route) => {
  const { ask, reported } = await open({ '/': route })
  expect(await ask('/', 'x')).toBe('200 known: refused')
  expect(reported).toEqual([])
})

test('surface - another error is answered as internal and reported once', async () => {
  const bug = new Error('a bug')
  const { ask, reported } = await open({ '/': { run: () => Promise.reject(bug) } })
  expect(await ask('/')).toBe('500 internal error')
  expect(reported).toEqual([bug])
})

test('surface - a route that answers while it accepts reads no body and runs no call', async () => {
  let runs = 0
  const { ask } = await open({
    '/': {
      ...echo,
      accept: ({ exchange }) => {
        exchange.answer('at once')
        return 100
      },
      run() {
        runs++
      },
    },
  })
  expect(await ask('/', 'x')).toBe('200 at once')
  expect(runs).toBe(0)
})

test('surface - a call counts while it runs, also after its client has disconnected', async () => {
  const admission = new AdmissionControl()
  const { promise, resolve } = Promise.withResolvers<void>()
  const { port } = await open({ '/': { run: () => promise } }, { frontDoor: { admission } })
  const { socket, closed } = new RawConnection(port)
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => admission.use.requests).toBe(1)
  socket.destroy()
  await closed
  expect(admission.use.requests).toBe(1)
  resolve()
  await expect.poll(() => admission.use.requests).toBe(0)
})

test('surface - close ends long polls at once, waits for other calls, and then ends them', async () => {
  const waits: PlainRoute = {
    run: ({ signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  }
  const steps: string[] = []
  const { ask, surface } = await open(
    { '/poll': { ...waits, endsAtShutdown: true }, '/call': waits, '/help': { ...echo, whileClosing: () => true } },
    {
      drain: async (graceMs) => void steps.push(`drain ${graceMs}`),
      finish: async () => void steps.push('finish'),
    },
  )
  const answers = ['/poll', '/call'].map(async (path) => {
    const answer = await ask(path)
    steps.push(path)
    return answer
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  const closed = surface.close(300)
  expect(surface.close(0)).toBe(closed)
  expect(await ask('/call')).toMatch(/^503/)
  expect(await ask('/help', 'x')).toBe('200 x')
  await closed
  expect(await Promise.all(answers)).toEqual(['200 ended: shutdown', '200 ended: shutdown'])
  expect(steps.slice(0, 2)).toEqual(['drain 300', '/poll'])
  expect(steps).toContain('finish')
})

test('surface - the signal of a call is aborted when its client disconnects', async () => {
  const reasons: unknown[] = []
  const { port } = await open({
    '/': {
      run: ({ signal }) =>
        new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as CallEnded).reason)
            resolve()
          }),
        ),
    },
  })
  const { socket } = new RawConnection(port)
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await new Promise((resolve) => setTimeout(resolve, 100))
  socket.destroy()
  await expect.poll(() => reasons).toEqual(['disconnected'])
})
