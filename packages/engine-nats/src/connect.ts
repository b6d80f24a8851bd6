import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'
import type { NatsConnection } from '@nats-io/transport-node'
import { connect, errors } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'

import type { ConnectionData } from './connection-options.ts'
import { connectionOptions } from './connection-options.ts'
import { NatsEngineError } from './errors.ts'
import type { Settings } from './options.ts'
import { withoutPassword } from './options.ts'

const RETRY_MS = 1_000

/**
 * Opens a connection. Waits for the servers as long as the settings allow, and reports the wait
 * once.
 * @throws NatsEngineError SERVERS_UNREACHABLE, SERVERS_REFUSED
 */
export async function connectToServers(settings: Settings, data: ConnectionData): Promise<NatsConnection> {
  const options = connectionOptions(data)
  const shown = settings.servers.map(withoutPassword).join(', ')
  for (let waiting = false; ;) {
    settings.signal?.throwIfAborted()
    try {
      const connection = await connect(options)
      if (waiting) settings.onProblem({ kind: 'healed', message: `connected to NATS at ${shown}` })
      return connection
    } catch (error) {
      if (isRefusal(error)) {
        throw new NatsEngineError('SERVERS_REFUSED', `NATS refused the connection to ${shown}: ${messageOf(error)}`, {
          cause: error,
        })
      }
      if (!settings.waitForServers) {
        throw new NatsEngineError('SERVERS_UNREACHABLE', `NATS cannot be reached at ${shown}`, { cause: error })
      }
      if (!waiting) {
        settings.onProblem({
          kind: 'disconnected',
          message: `NATS cannot be reached at ${shown}; waiting for it`,
          error,
        })
      }
      waiting = true
    }
    // An abort ends the wait; the check at the top of the loop throws its reason.
    await pause(RETRY_MS, undefined, { signal: settings.signal }).catch(() => {})
  }
}

/** Reads the files that the settings name. @throws NatsEngineError OPTION_INVALID */
export async function readConnectionData(settings: Settings): Promise<ConnectionData> {
  const { servers, prefix, requestTimeoutMs, credsFile, tls } = settings
  const creds = credsFile === undefined ? undefined : await readOption('credsFile', credsFile)
  const files = {
    ...(tls?.caFile !== undefined && { ca: await readOption('tls.caFile', tls.caFile) }),
    ...(tls?.certFile !== undefined && { cert: await readOption('tls.certFile', tls.certFile) }),
    ...(tls?.keyFile !== undefined && { key: await readOption('tls.keyFile', tls.keyFile) }),
  }
  const encrypted = Object.keys(tls ?? {}).length > 0 || servers.some((server) => server.startsWith('tls://'))
  return { servers, name: prefix, requestTimeoutMs, creds, tls: encrypted ? files : undefined }
}

async function readOption(name: string, file: string): Promise<string> {
  try {
    return (await readSmallFile(file)).text
  } catch (error) {
    throw new NatsEngineError('OPTION_INVALID', `invalid option ${name}: ${messageOf(error)}`, { cause: error })
  }
}

const CERTIFICATE = /certificate|self[- ]signed|unable to verify|ERR_TLS|altnames|secure connection/i

function isRefusal(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof errors.AuthorizationError) return true
    if (CERTIFICATE.test(cause.message)) return true
    if ('code' in cause && typeof cause.code === 'string' && CERTIFICATE.test(cause.code)) return true
  }
  return false
}
