import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { Message } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { expect, onTestFinished, test } from 'vitest'

import { openGateway } from '../gateway-host.ts'

async function sdkAgent(): Promise<string> {
  const main = fileURLToPath(new URL('../stream/sdk-agent-main.ts', import.meta.url))
  const child = fork(main, { execArgv: [] })
  onTestFinished(() => void child.kill())
  const [url] = (await once(child, 'message')) as [string]
  return url
}

test('native - the official client calls an agent with nothing but the URL of the gateway', async () => {
  const host = await openGateway()
  const url = await sdkAgent()
  await host.registry.register(
    { agent_id: 'sample', name: 'sample', url, capabilities: { streaming: true } },
    { clientId: 'owner' },
  )
  const client = await new ClientFactory().createFromUrl(`${host.base}/a2a/sample/`)
  const message = Message.fromJSON({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'work' }] })
  const seen: string[] = []
  let taskId = ''
  for await (const { payload } of client.sendMessageStream({
    message,
    tenant: '',
    configuration: undefined,
    metadata: undefined,
  })) {
    seen.push(payload?.$case ?? '')
    if (payload?.$case === 'task') taskId = payload.value.id
  }
  expect(seen).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
  expect((await client.getTask({ id: taskId, tenant: '', historyLength: 0 })).artifacts).toHaveLength(1)
  await expect(client.getTask({ id: 'nothing', tenant: '', historyLength: 0 })).rejects.toThrow(/not found/i)
  await host.deregister('sample')
  await expect(client.getTask({ id: taskId, tenant: '', historyLength: 0 })).rejects.toThrow('agent not found: sample')
  expect(host.finished.map(({ method }) => method)).toEqual(['message/stream', 'tasks/get', 'tasks/get', 'tasks/get'])
})
