import { once } from 'node:events'
import { connect } from 'node:net'

import { ANONYMOUS } from '@signalbox/broker-core'
import { countTicks } from '@signalbox/testkit/count-ticks'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { AdmissionControl, Authenticator } from '../src/index.ts'
import { AdmissionControl as Control, AuthenticationError, TrustedProxies } from '../src/index.ts'
import { bodyRoute, route, servePlain } from './support/plain-surface.ts'

/** Verifies callers by a header that names them. */
const byName: Authenticator = {
  authenticate({ headers }) {
    const { authorization } = headers
    if (authorization === undefined) throw new AuthenticationError('no name')
    return { clientId: authorization }
  },
}

async function idle(admission: AdmissionControl): Promise<void> {
  await expect.poll(() => admission.use).toMatchObject({ requests: 0, bodyBytes: 0, streams: 0, unreadBytes: 0 })
}

describe('surface - admission', () => {
  test('surface - an authenticator that answers at once and one that takes its time lead to the same handler', async () => {
    for (const authenticator of [
      { authenticate: () => ANONYMOUS },
      { authenticate: () => Promise.resolve(ANONYMOUS) },
    ] satisfies Authenticator[]) {
      const { url } = await servePlain(
        route((exchange, { caller }) => exchange.answer(caller.identity.clientId)),
        { authenticator },
      )
      expect(await (await fetch(url)).text()).toBe('anonymous')
    }
  })

  test('surface - refused credentials are no failure, an authenticator that breaks is one', async () => {
    const failures = [new AuthenticationError('no token'), new Error('broken')]
    for (const failure of failures) {
      for (const authenticate of [
        () => {
          throw failure
        },
        () => Promise.reject(failure),
      ]) {
        const { url, reported } = await servePlain(
          route((exchange) => exchange.answer('in')),
          {
            authenticator: { authenticate },
          },
        )
        const response = await fetch(url)
        const expected = failure instanceof AuthenticationError
        expect(response.status).toBe(expected ? 401 : 500)
        expect(reported).toEqual(expected ? [] : [failure])
      }
    }
  })

  test('surface - an origin that is not trusted is refused before the caller is looked at', async () => {
    const { url } = await servePlain(
      route((exchange) => exchange.answer('in')),
      { authenticator: byName },
    )
    const response = await fetch(url, { headers: { origin: 'http://evil.example' } })
    expect([response.status, await response.text()]).toEqual([
      403,
      'origin: origin not allowed; add it to trustedOrigins',
    ])
  })

  test('surface - after close only requests that may finish are admitted', async () => {
    const { surface, url } = await servePlain(route((exchange) => exchange.answer('in')))
    await surface.close(0)
    expect((await fetch(url)).status).toBe(503)
    const late = { ...route((exchange) => exchange.answer('in')), whileClosing: () => true }
    const open = await servePlain(late)
    await open.surface.close(0)
    expect((await fetch(open.url)).status).toBe(200)
  })
})

describe('surface - containment', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('a bug')
      },
    ],
    ['rejects', () => Promise.reject(new Error('a bug'))],
  ])('surface - a handler that %s is answered with the internal error and reported', async (_how, part) => {
    const { url, reported } = await servePlain(route(part))
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([500, 'internal error'])
    expect(reported).toMatchObject([{ message: 'a bug' }])
  })

  test('surface - a handler that throws after the body was read is answered and reported', async () => {
    const { url, reported } = await servePlain(
      bodyRoute(100, () => {
        throw new Error('a bug')
      }),
    )
    expect((await fetch(url, { method: 'POST', body: 'x' })).status).toBe(500)
    expect(reported).toHaveLength(1)
  })

  test('surface - an answer that cannot be given ends its connection, not the server', async () => {
    const { url, reported } = await servePlain(
      route((exchange) => {
        exchange.crash = () => {
          throw new Error('a second bug')
        }
        throw new Error('a bug')
      }),
    )
    await expect(fetch(url)).rejects.toThrow('fetch failed')
    expect(reported).toHaveLength(2)
  })
})

describe('surface - limits', () => {
  test('surface - requests in flight are limited for each caller, and free again when they end', async () => {
    const admission = new Control({ limits: { caller: { requestsInFlight: 2 } } })
    const open: (() => void)[] = []
    const { url } = await servePlain(
      route((exchange) => void open.push(() => exchange.answer('in'))),
      {
        authenticator: byName,
        frontDoor: { admission },
      },
    )
    const ask = (name: string): Promise<Response> => fetch(url, { headers: { authorization: name } })
    const answers = [ask('a'), ask('a')]
    await expect.poll(() => open).toHaveLength(2)
    const refused = await ask('a')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.text()).toBe(
      'limit caller_requests: this caller has reached its limit of 2 requests in flight (LIMITS_CALLER_REQUESTS_IN_FLIGHT); finish some first, or try again later',
    )
    const other = ask('b')
    await expect.poll(() => open).toHaveLength(3)
    for (const answer of open) answer()
    await Promise.all([...answers, other])
    await idle(admission)
    const again = ask('a')
    await expect.poll(() => open).toHaveLength(4)
    open[3]?.()
    expect((await again).status).toBe(200)
  })

  test("surface - anonymous callers are distinguished by address, and one may use half of the process's limits", async () => {
    const admission = new Control({ limits: { process: { requestsInFlight: 202 } } })
    const open: (() => void)[] = []
    const { url } = await servePlain(
      route((exchange) => void open.push(() => exchange.answer('in'))),
      {
        frontDoor: { admission, trustedProxies: new TrustedProxies(['127.0.0.1']) },
      },
    )
    const ask = (address: string): Promise<Response> => fetch(url, { headers: { 'x-forwarded-for': address } })
    const answers = Array.from({ length: 101 }, () => ask('192.0.2.1'))
    await expect.poll(() => open).toHaveLength(101)
    expect((await ask('192.0.2.1')).status).toBe(429)
    answers.push(...Array.from({ length: 101 }, () => ask('192.0.2.2')))
    await expect.poll(() => open).toHaveLength(202)
    expect(await (await ask('192.0.2.3')).text()).toMatch(/^limit process_requests/)
    for (const answer of open) answer()
    await Promise.all(answers)
    await idle(admission)
  })

  test('surface - requests a second are limited where that is asked for, with the time until the next one', async () => {
    const admission = new Control({ limits: { caller: { requestsPerSecond: 0.01 } } })
    const { url } = await servePlain(
      route((exchange) => exchange.answer('in')),
      { frontDoor: { admission } },
    )
    expect((await fetch(url)).status).toBe(200)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(90)
  })

  test('surface - bytes of bodies are counted as they arrive, and released when the answer is sent', async () => {
    const admission = new Control({ limits: { caller: { bodyBytes: 10_000 } } })
    const seen: number[] = []
    const { url } = await servePlain(
      bodyRoute(100_000, (exchange, _call, body) => {
        seen.push(admission.use.bodyBytes)
        exchange.answer(String(body.byteLength))
      }),
      { authenticator: byName, frontDoor: { admission } },
    )
    const post = (bytes: number): Promise<Response> =>
      fetch(url, { method: 'POST', body: 'x'.repeat(bytes), headers: { authorization: 'a' } })
    expect(await (await post(10_000)).text()).toBe('10000')
    expect(seen).toEqual([10_000])
    await idle(admission)
    const refused = await post(10_001)
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('limit caller_body_bytes')])
    await idle(admission)
  })

  test('surface - bytes of a reply count with those of the body, until they are discharged', async () => {
    const admission = new Control({ limits: { caller: { bodyBytes: 1_000 } } })
    const refusals: (string | undefined)[] = []
    const { url } = await servePlain(
      bodyRoute(100_000, (exchange) => {
        const { hold } = exchange
        refusals.push(hold?.charge(501)?.limit, hold?.charge(500)?.limit)
        hold?.discharge(200)
        refusals.push(hold?.charge(200)?.limit)
        exchange.answer(String(admission.use.bodyBytes))
      }),
      { authenticator: byName, frontDoor: { admission } },
    )
    const response = await fetch(url, { method: 'POST', body: 'x'.repeat(500), headers: { authorization: 'a' } })
    expect(await response.text()).toBe('1000')
    expect(refusals).toEqual(['caller_body_bytes', undefined, undefined])
    await idle(admission)
  })

  test('surface - a client that breaks off in the middle of its body holds nothing', async () => {
    const admission = new Control()
    const { port } = await servePlain(
      bodyRoute(100_000, (exchange) => exchange.answer('in')),
      { frontDoor: { admission } },
    )
    const { socket } = new RawConnection(port)
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n${'x'.repeat(20_000)}`)
    await expect.poll(() => admission.use.bodyBytes).toBe(50_000)
    socket.destroy()
    await idle(admission)
  })

  test('surface - work that continues after its client has disconnected stays counted until it is done', async () => {
    const admission = new Control()
    const working: (() => void)[] = []
    const { port } = await servePlain(
      bodyRoute(100_000, (exchange) => {
        exchange.hold?.retain()
        working.push(() => exchange.hold?.release())
      }),
      { frontDoor: { admission } },
    )
    const { socket, closed } = new RawConnection(port)
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello')
    await expect.poll(() => admission.use).toMatchObject({ requests: 1, bodyBytes: 5 })
    socket.destroy()
    // The connection's end is known to the server when the next request is answered.
    await closed
    await expect.poll(() => admission.use).toMatchObject({ requests: 1, bodyBytes: 5 })
    for (const finish of working) finish()
    await idle(admission)
  })

  test('surface - above the memory watermark large bodies and streams are refused, small bodies are not', async () => {
    let share = 0.9
    const admission = new Control({ measureMemory: () => share })
    const { url } = await servePlain(
      bodyRoute(1_000_000, (exchange) => {
        const refusal = exchange.hold?.toStream()
        if (refusal === undefined) exchange.answer('a stream')
        else exchange.refuse(refusal)
      }),
      { frontDoor: { admission } },
    )
    const post = async (bytes: number): Promise<string> =>
      (await fetch(url, { method: 'POST', body: 'x'.repeat(bytes) })).text()
    expect(await post(65_537)).toBe('limit memory: the server is short of memory; try again later')
    expect(await post(10)).toBe('limit memory: the server is short of memory; try again later')
    expect(admission.use.memoryExceeded).toBe(true)
    share = 0.5
    await expect.poll(() => admission.use.memoryExceeded).toBe(false)
    expect(await post(65_537)).toBe('a stream')
  })

  test('surface - a caller that does not read its answers is disconnected above the limit on unread bytes', async () => {
    const admission = new Control({ limits: { process: { unreadBytes: 16_000_000 } } })
    const { port } = await servePlain(
      route((exchange) => exchange.answer('x'.repeat(6_000_000))),
      {
        frontDoor: { admission },
      },
    )
    const sockets = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const { socket } = await RawConnection.open(port)
        // Reads nothing.
        socket.pause()
        socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
        return socket
      }),
    )
    expect(sockets.some(({ destroyed, readableEnded }) => destroyed || readableEnded)).toBe(false)
    await expect.poll(() => admission.use.unreadBytes).toBeGreaterThan(0)
    expect(admission.use.unreadBytes).toBeLessThanOrEqual(8_000_000)
    for (const socket of sockets) socket.destroy()
    await idle(admission)
  })

  test('surface - of many bodies at once, it accepts as many as fit the limit', async () => {
    const admission = new Control({ limits: { caller: { bodyBytes: 1_000_000 }, process: { bodyBytes: 2_000_000 } } })
    const { url } = await servePlain(
      bodyRoute(10_000_000, (exchange) => exchange.answer('taken')),
      { frontDoor: { admission }, authenticator: byName },
    )
    const { port } = new URL(url)
    const half = 'x'.repeat(200_000)
    const head = `POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: one\r\nContent-Length: 400000\r\n\r\n${half}`
    const open = Array.from({ length: 5 }, () => connect(Number(port), '127.0.0.1'))
    onTestFinished(() => open.forEach((socket) => socket.destroy()))
    // Refused requests are answered before the second half is sent, and their connections are closed.
    const answers = open.map(async (socket) => {
      socket.on('error', () => {})
      return String((await once(socket, 'data'))[0])
    })
    for (const socket of open) socket.write(head)
    await expect.poll(() => admission.use.bodyBytes).toBe(800_000)
    for (const socket of open) socket.write(half)
    const taken = (await Promise.all(answers)).filter((answer) => answer.startsWith('HTTP/1.1 200'))
    expect(taken).toHaveLength(2)
  })

  test('surface - bodies above 16 KiB are read one in a tick of the event loop, smaller ones at once', async () => {
    const turn = countTicks()
    const turns: number[] = []
    const { url } = await servePlain(
      bodyRoute(10_000_000, (exchange) => {
        turns.push(turn())
        exchange.answer('taken')
      }),
    )
    const { port } = new URL(url)
    const sockets = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const socket = connect(Number(port), '127.0.0.1')
        onTestFinished(() => void socket.destroy())
        await once(socket, 'connect')
        return socket
      }),
    )
    const taken = async (bytes: number): Promise<number> => {
      turns.length = 0
      const request = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
      for (const socket of sockets) socket.write(request)
      await Promise.all(sockets.map((socket) => once(socket, 'data')))
      return new Set(turns).size
    }
    // The first requests find the connections in different ticks.
    await taken(10)
    expect(await taken(16_000)).toBeLessThan(8)
    expect(await taken(17_000)).toBe(8)
  })

  test('surface - requests that arrive at the same time begin in their order, a few of them in each tick', async () => {
    const turn = countTicks()
    const begun: { readonly body: string; readonly turn: number }[] = []
    const { url } = await servePlain(
      bodyRoute(100, (exchange, _call, body) => {
        begun.push({ body: String(body), turn: turn() })
        for (const end = performance.now() + 1; performance.now() < end;);
        exchange.answer('taken')
      }),
    )
    const sent = Array.from({ length: 5 }, (_, i) => Array.from({ length: 16 }, (_, n) => String(10 + 16 * i + n)))
    const connections = await Promise.all(sent.map(() => RawConnection.open(url)))
    const round = async (bodies: readonly (readonly string[])[]): Promise<void> => {
      begun.length = 0
      const requests = bodies.map((each) =>
        each.map((body) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n${body}`).join(''),
      )
      for (const [i, connection] of connections.entries()) connection.socket.write(requests[i] ?? '')
      for (const [i, connection] of connections.entries()) {
        for (const _ of bodies[i] ?? []) await connection.until('taken')
      }
    }
    // The first requests find the connections in different ticks.
    await round(sent.map(([first = '']) => [first]))
    await round(sent)
    for (const bodies of sent) {
      expect(begun.map(({ body }) => body).filter((body) => bodies.includes(body))).toEqual(bodies)
    }
    const perTurn = Map.groupBy(begun, (each) => each.turn)
    expect(Math.max(...Array.from(perTurn.values(), (requests) => requests.length))).toBeLessThanOrEqual(36)
  })

  test('surface - limits can be replaced while requests are under way', async () => {
    const admission = new Control({ limits: { process: { requestsInFlight: 1 } } })
    const open: (() => void)[] = []
    const { url } = await servePlain(
      route((exchange) => void open.push(() => exchange.answer('in'))),
      {
        frontDoor: { admission },
      },
    )
    const first = fetch(url)
    await expect.poll(() => open).toHaveLength(1)
    expect((await fetch(url)).status).toBe(429)
    const { caller, process } = {
      caller: { requestsPerSecond: 0, requestsInFlight: 0, bodyBytes: 0, streams: 0 },
      process: { requestsInFlight: 0, bodyBytes: 0, streams: 0, unreadBytes: 0, memoryPercent: 0 },
    }
    admission.setLimits({ caller, process })
    const second = fetch(url)
    await expect.poll(() => open).toHaveLength(2)
    for (const answer of open) answer()
    expect((await first).status).toBe(200)
    expect((await second).status).toBe(200)
  })
})

describe('surface - web pages', () => {
  const frontDoor = { allowedHosts: ['auto'] }
  const ask = async (headers: Record<string, string>, options: Parameters<typeof servePlain>[1] = { frontDoor }) => {
    const { port } = await servePlain(
      route((exchange) => exchange.answer('in')),
      options,
    )
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const lines = Object.entries({ Connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`GET / HTTP/1.1\r\n${lines.join('')}\r\n`)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return `${text.slice(9, 12)} ${text.slice(text.indexOf('\r\n\r\n') + 4)}`
  }

  test.each(['localhost', 'localhost:9090', 'LOCALHOST.', '127.0.0.1:1', '[::1]:9090', '10.1.2.3:9090'])(
    'surface - without authentication the Host %s may be asked for',
    async (host) => {
      expect(await ask({ Host: host })).toBe('200 in')
    },
  )

  test.each(['evil.example', 'evil.example:9090', 'localhost.evil.example', '127.0.0.1.evil.example', 'a'.repeat(301)])(
    'surface - without authentication the Host %s is refused, and the setting named',
    async (host) => {
      expect(await ask({ Host: host })).toMatch(/^403 host: host not allowed: .*HTTP_ALLOWED_HOSTS/)
    },
  )

  test('surface - listed hosts, the public one and the bind address may be asked for', async () => {
    expect(await ask({ Host: 'a.example' }, { frontDoor: { allowedHosts: ['a.example'] } })).toBe('200 in')
    expect(await ask({ Host: 'localhost' }, { frontDoor: { allowedHosts: ['a.example'] } })).toMatch(/^403/)
    expect(await ask({ Host: 'p.example' }, { frontDoor: { ...frontDoor, publicHost: 'p.example' } })).toBe('200 in')
    expect(await ask({ Host: 'node-1' }, { frontDoor, bindHost: 'node-1' })).toBe('200 in')
  })

  test('surface - with authentication any Host is allowed, and requests that other sites cause are too', async () => {
    const options = { frontDoor, authenticator: byName }
    expect(await ask({ Host: 'evil.example', Authorization: 'a', 'Sec-Fetch-Site': 'cross-site' }, options)).toBe(
      '200 in',
    )
  })

  test('surface - a navigation or an image of another site is refused, a fetch of a trusted origin is not', async () => {
    const crossSite = { Host: 'localhost', 'Sec-Fetch-Site': 'cross-site' }
    expect(await ask(crossSite)).toMatch(/^403 cross_site/)
    const origin = 'https://app.example'
    expect(await ask({ ...crossSite, Origin: origin }, { frontDoor, trustedOrigins: [origin] })).toBe('200 in')
    expect(await ask(crossSite, { frontDoor, trustedOrigins: '*' })).toBe('200 in')
    expect(await ask({ Host: 'localhost', 'Sec-Fetch-Site': 'none' })).toBe('200 in')
    expect(await ask({ Host: 'localhost', 'Sec-Fetch-Site': 'same-origin' })).toBe('200 in')
  })
})
