import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import type { Answer } from './support/agent.ts'
import { register, startAgent, withResult } from './support/agent.ts'
import { startCli } from './support/cli.ts'
import { PATIENT } from './support/nodes.ts'
import { serve } from './support/server.ts'
import { answerTask, getTask, startTask, taskRequest, untilTask } from './support/tasks.ts'

const ASKING = {
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: { state: 'input-required', message: { kind: 'message', parts: [{ kind: 'text', text: 'for how many?' }] } },
}

interface Message {
  readonly parts: readonly { readonly text: string }[]
  readonly taskId?: string
}

/** Asks for input on `ask`, and never answers anything else. */
const clerk: Answer = ({ params }, response) => {
  const { parts, taskId } = params['message'] as Message
  const text = parts[0]?.text
  const answer = (result: unknown): void => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  }
  if (taskId !== undefined) answer({ kind: 'message', parts: [{ kind: 'text', text: `booked for ${text}` }] })
  else if (text === 'ask') answer(ASKING)
}

test(
  'M19, M20 - after kill -9 results can be read, questions answered, and a call that ran has failed',
  { timeout: 60_000 },
  async () => {
    const toldQuick = Promise.withResolvers<void>()
    const agent = await startAgent(async (asked, response) => {
      const { parts } = asked.params['message'] as Message
      if (parts[0]?.text !== 'quick') return clerk(asked, response)
      await toldQuick.promise
      return withResult({ kind: 'message', parts: [] })(asked, response)
    })
    const env = { STORE_PATH: testFolder(), CONNECTORSMCP_TASKS_AFTER_MS: '100', LOG_LEVEL: 'info' }
    const cli = startCli({ env })
    const before = await cli.ready()
    await register(before.http, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
    const send = (message: string) => startTask(before.http, 'agent_send', { agent_id: 'clerk', message })
    const quick = await send('quick')
    // The caller has its task; now the agent answers.
    toldQuick.resolve()
    const [ask, slow] = [await send('ask'), await send('slow')]
    await untilTask(before.http, quick, 'completed')
    await untilTask(before.http, ask, 'input_required')
    expect(await getTask(before.http, slow)).toMatchObject({ status: 'working' })
    cli.child.kill('SIGKILL')
    await cli.exited

    const { http } = await startCli({ env }).ready()
    expect(await getTask(http, quick)).toMatchObject({ status: 'completed', result: { isError: false } })
    const failed = await untilTask(http, slow, 'failed')
    expect(failed.error).toMatchObject({ code: -32603, message: expect.stringContaining('may have run') })
    const asked = await getTask(http, ask)
    expect(Object.values(asked.inputRequests ?? {})).toMatchObject([{ params: { message: 'for how many?' } }])
    await answerTask(http, asked, 'four')
    const { result } = await untilTask(http, ask, 'completed')
    expect(result?.content[0]?.text).toContain('booked for four')
    expect(agent.asked.at(-1)?.params['message']).toMatchObject({ taskId: 't1', contextId: 'c1' })
  },
)

test('M20 - tasks/cancel reaches the agent that asked, and drops the reply of one that still works', async () => {
  const slowReply = Promise.withResolvers<() => void>()
  const agent = await startAgent((asked, response) => {
    const message = asked.params['message'] as Message | undefined
    if (message?.parts[0]?.text === 'slow') slowReply.resolve(() => void withResult({ late: true })(asked, response))
    else if (asked.method === 'message/send') return clerk(asked, response)
    if (asked.method === 'message/send') return
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { ...ASKING, status: { state: 'canceled' } } }))
  })
  const { http } = await serve({ connectors: { mcp: { tasks: { afterMs: 50 } } } })
  await register(http.url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
  const [slow, ask] = await Promise.all(
    ['slow', 'ask'].map((message) => startTask(http.url, 'agent_send', { agent_id: 'clerk', message })),
  )
  await untilTask(http.url, ask!, 'input_required')
  for (const taskId of [slow!, ask!]) {
    await taskRequest(http.url, 'tasks/cancel', { taskId })
    expect(await getTask(http.url, taskId)).toMatchObject({ status: 'cancelled' })
  }
  await expect.poll(() => agent.asked.at(-1), PATIENT).toMatchObject({ method: 'tasks/cancel', params: { id: 't1' } })
  ;(await slowReply.promise)()
  expect(await getTask(http.url, slow!)).toMatchObject({ status: 'cancelled' })
})

test('M19 - settings: tasks can be turned off, and the limit of a caller is counted', async () => {
  const off = await serve({ connectors: { mcp: { tasks: { enable: false } } } })
  const discovered = await taskRequest(off.http.url, 'server/discover', {}, { 'mcp-name': '' })
  expect(discovered.result).toMatchObject({ capabilities: { tools: {} } })
  expect(JSON.stringify(discovered)).not.toContain('extensions')
  expect(await taskRequest(off.http.url, 'tasks/get', { taskId: 'a' })).toMatchObject({ error: { code: -32601 } })

  const { http, api, broker } = await serve({ connectors: { mcp: { tasks: { afterMs: 20, max: 1 } } } })
  const done = Promise.withResolvers<void>()
  onTestFinished(() => done.resolve())
  const subscription = await broker.as({ clientId: 'responder' }).commands.subscribe('do', {}, async () => {
    await done.promise
    return {}
  })
  onTestFinished(() => subscription.close())
  const args = { channel: 'do', body: 'x', timeout_seconds: 30 }
  await startTask(http.url, 'command_send', args)
  const plain = taskRequest(http.url, 'tools/call', { name: 'command_send', arguments: args })
  const page = async () => (await fetch(`${api.url}/metrics`)).text()
  await expect.poll(page, PATIENT).toMatch(/^broker_limit_refusals_total\{limit="(caller_)?tasks"\} 1$/m)
  done.resolve()
  expect(await plain).toMatchObject({ result: { resultType: 'complete', isError: false } })
})
