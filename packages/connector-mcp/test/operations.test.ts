import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { mcpConnector } from '../src/index.ts'
import { slowResponder, startTaskHost } from './task-host.ts'

const UNTIL_ENDED = new AbortController().signal

test('operations - tools are listed, and called without a client of MCP', async () => {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  const { broker } = createBroker(engine)
  const connector = mcpConnector(broker)
  onTestFinished(async () => {
    await connector.close()
    await engine.close()
  })
  const { operations } = connector
  expect(operations.tasks).toBeUndefined()
  expect(operations.tools().map(({ name }) => name)).toContain('queue_send')
  const context = { broker: broker.as({ clientId: 'op' }), signal: UNTIL_ENDED }
  expect(await operations.callTool('queue_send', { channel: 'q', body: 'x' }, context)).toMatchObject({
    isError: false,
  })
  expect(await context.broker.queues.peek('q')).toMatchObject([{ clientId: 'op' }])
  expect(await operations.callTool('nothing', {}, context)).toBeUndefined()
  await expect(operations.callTool('queue_send', {}, context)).rejects.toMatchObject({ code: -32_602 })
})

test('operations - tasks are listed with the changes that the node has seen, and cancelled for their owner', async () => {
  const host = await startTaskHost()
  const node = await host.node()
  await slowResponder(host.user)
  const { taskId } = await node.call('query_send', { channel: 'ask', body: 'x', timeout_seconds: 60 })
  const { tasks } = node.operations
  expect(tasks?.list()).toMatchObject([
    {
      id: taskId,
      tool: 'query_send',
      owner: 'anonymous',
      status: 'working',
      events: [{ event: 'created' }, { event: 'working' }],
    },
  ])
  expect(await tasks?.cancel('nothing')).toBeUndefined()
  const message = 'an operator cancelled the task'
  expect(await tasks?.cancel(taskId)).toMatchObject({ status: 'cancelled', statusMessage: message })
  expect(await node.get(taskId)).toMatchObject({ status: 'cancelled', statusMessage: message })
  expect(tasks?.list()[0]?.events).toMatchObject([{}, {}, { event: 'cancelled', detail: message }])
  expect(node.failures).toEqual([])
})
