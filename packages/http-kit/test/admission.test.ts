import { testServer } from '@signalbox/testkit/test-server'
import { describe, expect, test } from 'vitest'

import { AdmissionControl, TrustedProxies } from '../src/index.ts'
import { ResultSize } from '@signalbox/broker-core/engine'
import { addressOf, answerBound, derivedLimits, HeldBytes, networkOf } from '../src/internal.ts'
import { ConnectionCaller } from '../src/surface/caller.ts'

async function addressBy(proxies: TrustedProxies, headers: Record<string, string>): Promise<string> {
  const server = await testServer((request, response) => {
    proxies.locate(request)
    response.setHeader('Connection', 'close')
    response.end(addressOf(request))
  })
  const { port } = server
  return (await fetch(`http://127.0.0.1:${port}/`, { headers })).text()
}

const LIST = ['127.0.0.0/8', '10.0.0.0/8', '2001:db8::/32']

test.each([
  [{ 'x-forwarded-for': '192.0.2.1' }, '192.0.2.1'],
  [{ 'x-forwarded-for': '6.6.6.6, 192.0.2.1, 10.1.1.1' }, '192.0.2.1'],
  [{ 'x-forwarded-for': '10.2.2.2, 10.1.1.1' }, '10.2.2.2'],
  [{ 'x-forwarded-for': '192.0.2.1:4711' }, '192.0.2.1'],
  [{ 'x-forwarded-for': '::ffff:192.0.2.1' }, '192.0.2.1'],
  [{ 'x-forwarded-for': 'unknown' }, '127.0.0.1'],
  [{ 'x-forwarded-for': '192.0.2.1, not an address, 10.1.1.1' }, '10.1.1.1'],
  [{ 'x-forwarded-for': '1.1.1.1,'.repeat(400) }, '127.0.0.1'],
  [{ 'x-forwarded-for': '192.0.2.7', forwarded: 'for=6.6.6.6' }, '192.0.2.7'],
  [{ forwarded: 'for=6.6.6.6' }, '127.0.0.1'],
  [{}, '127.0.0.1'],
])('trusted proxies - %j names %s', async (headers, address) => {
  expect(await addressBy(new TrustedProxies(LIST), headers)).toBe(address)
})

test.each([
  [{ forwarded: 'for=192.0.2.1;proto=https, for="[2001:db8::1]:80"' }, '192.0.2.1'],
  [{ forwarded: 'For="[2001:dead::1]"' }, '2001:dead::1'],
  [{ forwarded: 'for=192.0.2.7', 'x-forwarded-for': '6.6.6.6' }, '192.0.2.7'],
  [{ forwarded: 'for=_hidden' }, '127.0.0.1'],
  [{ forwarded: 'for=1.1.1.1,'.repeat(200) }, '127.0.0.1'],
  [{ 'x-forwarded-for': '6.6.6.6' }, '127.0.0.1'],
])('trusted proxies - with the header Forwarded, %j names %s', async (headers, address) => {
  expect(await addressBy(new TrustedProxies(LIST, 'forwarded'), headers)).toBe(address)
})

test('trusted proxies - headers of other addresses are ignored', async () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }
  expect(await addressBy(new TrustedProxies(), headers)).toBe('127.0.0.1')
  expect(await addressBy(new TrustedProxies(['10.0.0.0/8']), headers)).toBe('127.0.0.1')
})

test.each(['', 'proxy.example', '10.0.0.0/33', '::1/129', '10.0.0.0/8/8', '10.0.0.0/-1', '10.0.0.0/a'])(
  'trusted proxies - %j is refused as a range',
  (entry) => {
    expect(() => new TrustedProxies([entry])).toThrow(RangeError)
  },
)

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  [undefined, 'unknown'],
])('networks - %s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

const MIB = 2 ** 20

describe('limits - memory', () => {
  test.each([256, 512, 2_048, 4_096, 65_536])(
    'limits - budgets of %i MiB fit into it, with room for copies',
    (memory) => {
      const { callerBodyBytes, cardBytes, processBodyBytes, streamBytes, unreadBytes } = derivedLimits(memory * MIB)
      const sum = cardBytes + processBodyBytes + streamBytes + unreadBytes
      expect(sum).toBeLessThanOrEqual((memory * MIB * 9) / 16)
      expect(callerBodyBytes).toBeLessThanOrEqual(processBodyBytes / 2)
      expect(callerBodyBytes).toBeLessThanOrEqual(64 * MIB)
    },
  )

  test('limits - the documented figures of 1 GB with the default heap', () => {
    expect(derivedLimits(512 * MIB)).toEqual({
      processBodyBytes: 128 * MIB,
      callerBodyBytes: 64 * MIB,
      unreadBytes: 64 * MIB,
      streamBytes: 32 * MIB,
      cardBytes: 64 * MIB,
    })
  })

  test('limits - a limit that is set stays as it is', () => {
    const bodyBytes = 2 ** 40
    expect(new AdmissionControl({ limits: { process: { bodyBytes } } }).limits.process.bodyBytes).toBe(bodyBytes)
  })

  test('limits - bytes of work without a request count for its caller until they are released', () => {
    const admission = new AdmissionControl({ limits: { caller: { bodyBytes: 100 }, process: { bodyBytes: 150 } } })
    const one = new HeldBytes(admission, 'client:one')
    const two = new HeldBytes(admission, 'client:two')
    expect(one.charge(60)).toBeUndefined()
    expect(one.charge(60)?.limit).toBe('caller_body_bytes')
    expect(two.charge(100)?.limit).toBe('process_body_bytes')
    one.discharge(20)
    expect(one.bytes).toBe(40)
    expect(two.charge(100)).toBeUndefined()
    one.release()
    two.release()
    one.release()
    expect(admission.use.bodyBytes).toBe(0)
  })
})

test('limits - a caller whose idle account was forgotten is counted in the current one', async () => {
  const control = new AdmissionControl()
  const caller = new ConnectionCaller({ clientId: 'anonymous' }, '192.0.2.1', undefined, true)
  const first = caller.accountIn(control)
  expect(caller.accountIn(control)).toBe(first)
  // An account is idle two seconds after its last use, and a process starts at zero.
  await expect.poll(() => performance.now()).toBeGreaterThan(2_000)
  for (let i = 0; i < 2_048; i++) control.account(`address:other ${i}`, true)
  const current = caller.accountIn(control)
  expect(current).not.toBe(first)
  expect(current).toBe(control.account(caller.account, true))
})

test('answers - a large message counts until it was read, so that reads at the same time are within the budget', async () => {
  const admission = new AdmissionControl({ limits: { caller: { bodyBytes: 10_000_000 } } })
  const read = async (): Promise<ResultSize> =>
    new ResultSize(await answerBound(4_000_000, new HeldBytes(admission, 'client:reader'), () => {}))
  const [first, second] = [await read(), await read()]
  expect(first.mayFit(6_000_000)).toBe(true)
  expect(admission.use.bodyBytes).toBe(6_000_000)
  expect(() => second.mayFit(6_000_000)).toThrow(/bytes/)

  first.add({ body: new Uint8Array(6_000_000), metadata: '', tags: {} }, 6_000_000)
  expect(admission.use.bodyBytes).toBe(0)
  expect(second.mayFit(6_000_000)).toBe(true)
})
