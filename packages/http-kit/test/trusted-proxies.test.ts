import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { addressOf, networkOf, TrustedProxies } from '../src/index.ts'

async function addressBy(proxies: TrustedProxies, headers: Record<string, string>): Promise<string> {
  const server = createServer((request, response) => {
    proxies.locate(request)
    response.setHeader('Connection', 'close')
    response.end(addressOf(request))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
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
