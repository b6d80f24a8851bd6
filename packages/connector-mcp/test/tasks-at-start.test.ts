import { setTimeout as pause } from 'node:timers/promises'

import { expect, test } from 'vitest'

import type { TaskStore } from '../src/index.ts'
import { brokerTaskStore } from '../src/index.ts'
import { slowResponder, startTaskHost } from './task-host.ts'

type TaskSink = Parameters<TaskStore['follow']>[0]

test('M19 - a call that waits while the node reads the stored tasks becomes a task when they are read', async () => {
  const host = await startTaskHost()
  const store = brokerTaskStore(host.system, { shared: true })
  const followed = Promise.withResolvers<TaskSink>()
  const node = await host.node({
    store: {
      shared: true,
      write: (key, entry, expected) => store.write(key, entry, expected),
      last: (key) => store.last(key),
      announce: (id) => store.announce(id),
      follow(sink, signal) {
        followed.resolve(sink)
        return store.follow(sink, signal)
      },
    },
  })
  const sink = await followed.promise
  sink.restart()
  const { arrived } = await slowResponder(host.user)
  const called = node.call('query_send', { channel: 'ask', body: 'x', timeout_seconds: 60 })
  await arrived
  // Longer than the 20 ms after which calls become tasks here.
  await pause(200)
  sink.current()
  expect(await called).toMatchObject({ resultType: 'task', status: 'working' })
})
