import type { NatsConnection, Subscription } from '@nats-io/transport-node'
import { connect } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

import type { ConnectionData } from '../connection-options.ts'
import { connectionOptions } from '../connection-options.ts'
import type { ThreadCall, ThreadNews } from './thread-calls.ts'
import { failureOf, headersOf, passed } from './thread-calls.ts'

const RETRY_MS = 1_000

const subscriptions = new Map<string, Subscription>()

function report(news: ThreadNews, moved: ArrayBuffer[] = []): void {
  parentPort?.postMessage(news, moved)
}

async function opened(data: ConnectionData): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect(connectionOptions(data))
    } catch {
      // The engine has connected before, and uses its connection until this one is open.
      await pause(RETRY_MS)
    }
  }
}

async function follow(connection: NatsConnection): Promise<void> {
  report({ kind: 'connected' })
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') report({ kind: 'disconnected' })
    if (status.type === 'reconnect') report({ kind: 'connected' })
    if (status.type === 'error') report({ kind: 'problem', message: status.error.message })
  }
}

async function answer(connection: NatsConnection, call: ThreadCall & { readonly kind: 'request' }): Promise<void> {
  const { id, subject, payload, timeoutMs } = call
  const options = { timeout: timeoutMs, ...(call.headers.length > 0 && { headers: headersOf(call.headers) }) }
  try {
    const { message, moved } = passed(await connection.request(subject, payload, options))
    report({ kind: 'answer', id, message }, moved)
  } catch (error) {
    report({ kind: 'failed', id, ...failureOf(error) })
  }
}

function subscribe(connection: NatsConnection, subject: string): void {
  const subscription = connection.subscribe(subject, {
    callback: (error, received) => {
      // A refusal of the servers arrives as a status too.
      if (error) return
      const { message, moved } = passed(received)
      report({ kind: 'message', subscription: subject, message }, moved)
    },
  })
  subscriptions.set(subject, subscription)
}

async function drain(id: number, subject: string): Promise<void> {
  await subscriptions
    .get(subject)
    ?.drain()
    .catch(() => {})
  subscriptions.delete(subject)
  report({ kind: 'drained', id })
}

function run(connection: NatsConnection, call: ThreadCall): void {
  if (call.kind === 'request') void answer(connection, call)
  else if (call.kind === 'publish') connection.publish(call.subject, call.payload, { reply: call.reply })
  else if (call.kind === 'subscribe') subscribe(connection, call.subject)
  else if (call.kind === 'drain') void drain(call.id, call.subject)
  else {
    subscriptions.get(call.subject)?.unsubscribe()
    subscriptions.delete(call.subject)
  }
}

const data: ConnectionData = workerData
const connection = await opened(data)
parentPort?.on('message', (call: ThreadCall) => {
  try {
    run(connection, call)
  } catch (error) {
    // The connection is closed, or the payload is larger than a server that it moved to accepts.
    report({ kind: 'problem', message: error instanceof Error ? error.message : String(error) })
  }
})
await follow(connection)
// The client library has given up: the engine starts another thread.
parentPort?.close()
