import { spawnSync } from 'node:child_process'

/** A program outside npm that the tests of some requirements run, and without which they are skipped. */
export type Need = 'nats-server'

/** The places where `@signalbox/engine-nats/testing` looks. The end of a run cannot import it: the package may not be built. */
const NATS_SERVERS = ['nats-server', '/usr/sbin/nats-server', '/usr/local/bin/nats-server']

/** Returns the needs that this machine does not meet. */
export function missingHere(): ReadonlySet<Need> {
  const servers = [process.env['NATS_SERVER_BINARY'] ?? '', ...NATS_SERVERS].filter((command) => command !== '')
  const found = servers.some((command) => spawnSync(command, ['--version']).status === 0)
  return new Set<Need>(found ? [] : ['nats-server'])
}
