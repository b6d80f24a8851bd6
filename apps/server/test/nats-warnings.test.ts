import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import { maskedConfig } from '../src/config/setting-statuses.ts'
import { warnOfOpenEngine } from '../src/engine/engines.ts'
import { startServer } from '../src/server.ts'
import { startNats } from './support/nodes.ts'

interface Line {
  readonly msg: string
  readonly servers?: readonly string[]
}

function collector() {
  const lines: Line[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as Line)
  return { lines, log: pino({ level: 'warn' }, { write }) }
}

const PASSWORD = 'nats://box:secret@nats-1:4222'
const CA = { caFile: '/etc/ca.pem' }
const OWN = { ...CA, certFile: '/etc/node.crt', keyFile: '/etc/node.key' }

test.each<[string, PartialConfig['nats'], readonly string[]]>([
  ['this machine', { servers: ['nats://127.0.0.1:4222', 'localhost:4222', 'nats://[::1]:4222'] }, []],
  ['another machine', { servers: ['nats://nats-1:4222'] }, ['credentials', 'TLS']],
  ['one of several', { servers: ['nats://127.0.0.1:4222', 'nats-2'] }, ['credentials', 'TLS']],
  ['a name that looks local', { servers: ['nats://localhost.example.com:4222'] }, ['credentials', 'TLS']],
  ['a password in the clear', { servers: [PASSWORD] }, ['TLS']],
  ['TLS alone', { servers: ['tls://nats-1:4222'] }, ['credentials']],
  ['an authority alone', { servers: ['nats://nats-1:4222'], tls: CA }, ['credentials']],
  ['TLS and a password', { servers: [PASSWORD.replace('nats:', 'tls:')] }, []],
  ['TLS and a credentials file', { servers: ['nats-1:4222'], credsFile: '/etc/box.creds', tls: CA }, []],
  ['TLS and a certificate', { servers: ['nats-1:4222'], tls: OWN }, []],
])('S7 - NATS that others reach without credentials or TLS is warned of: %s', (_, nats, missing) => {
  const { lines, log } = collector()
  warnOfOpenEngine(log, createConfig({ engine: 'nats', ...(nats && { nats }) }))
  expect(lines.flatMap(({ msg }) => Array.from(msg.matchAll(/without (\w+) \(/g), ([, what]) => what))).toEqual(missing)
  expect(JSON.stringify(lines)).not.toContain('secret')
})

test.skipIf(NATS_SERVER === undefined)('S7 - a server warns at its start of NATS that others reach', async () => {
  const nats = await startNats()
  const { lines, log } = collector()
  // This machine by an address that is not loopback's.
  const servers = [nats.url.replace('127.0.0.1', '0.0.0.0')]
  const listeners = { http: { port: 0 }, api: { port: 0 } }
  const server = await startServer(createConfig({ ...listeners, engine: 'nats', nats: { servers } }), { log })
  onTestFinished(() => server.close())
  const reported = lines.filter(({ msg }) => msg.startsWith('NATS is on another machine'))
  expect(reported).toEqual([expect.objectContaining({ servers: [servers[0]?.slice('nats://'.length)] })])
})

test('configuration - operators see the addresses of NATS servers without their passwords', () => {
  const config = createConfig({ engine: 'nats', nats: { servers: [PASSWORD, 'nats-2:4222'] } })
  expect(maskedConfig(config)).toMatchObject({ nats: { servers: ['nats://box:…@nats-1:4222', 'nats-2:4222'] } })
})
