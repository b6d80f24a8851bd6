import { describe, expect, test } from 'vitest'

import type { AgentAnswer } from './agent-directory.ts'
import { asking, DONE, expectConversation, formOf, reply, SEND, startAskingAgent } from './asking-agent.ts'
import type { Task } from './task-host.ts'
import { capabilities } from './task-host.ts'

function onlyKey(task: Task): string {
  const keys = Object.keys(task.inputRequests ?? {})
  expect(keys).toHaveLength(1)
  return keys[0] ?? ''
}

describe('M20 an agent asks for input', () => {
  test('M20 - the question is a form for the user, and the answer continues the task of the agent', async () => {
    const host = await startAskingAgent(asking('for how many?'), asking('at what time?'), DONE)
    // The agent asks before the call is long, so the call becomes a task at once.
    const node = await host.node({ afterMs: 60_000 })
    const created = await node.call('agent_send', SEND)
    expect(created).toMatchObject({ resultType: 'task', status: 'working' })
    expect(created).not.toHaveProperty('inputRequests')
    const first = await node.until(created.taskId, 'input_required')
    const key = onlyKey(first)
    expect(first.inputRequests?.[key]).toEqual(formOf('for how many?'))
    // Another node continues the task as well as this one.
    const other = await host.node()
    const answer = { action: 'accept', content: { answer: 'four' } }
    const { result } = await other.ask('tasks/update', { taskId: created.taskId, inputResponses: { [key]: answer } })
    expect(result).toEqual({ resultType: 'complete', _meta: expect.anything() })
    let second: Task | undefined
    await expect
      .poll(async () => Object.keys((second = await node.get(created.taskId)).inputRequests ?? {})[0])
      .not.toBeOneOf([undefined, key])
    expect(second?.inputRequests).toMatchObject({ [onlyKey(second as Task)]: { params: { message: 'at what time?' } } })
    // The answer to an earlier question is ignored.
    await node.ask('tasks/update', { taskId: created.taskId, inputResponses: { [key]: answer, unknown: 5 } })
    expect(await node.get(created.taskId)).toMatchObject({ status: 'input_required' })
    const eight = { action: 'accept', content: { answer: 'eight' } }
    await node.ask('tasks/update', { taskId: created.taskId, inputResponses: { [onlyKey(second as Task)]: eight } })
    const done = await node.until(created.taskId, 'completed')
    expect(done.result).toMatchObject({
      isError: false,
      structuredContent: { reply: { status: { state: 'completed' } } },
    })
    expectConversation(host, 'four', 'eight')
    expect(node.failures).toEqual([])
  })

  test('M20 - a question of A2A 1.0 is understood', async () => {
    const message = { role: 'ROLE_AGENT', messageId: 'm', parts: [{ text: 'why?' }] }
    const task = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_INPUT_REQUIRED', message } }
    const host = await startAskingAgent(reply({ task }))
    const node = await host.node()
    const params = { message: { role: 'ROLE_USER', messageId: 'a', parts: [{ text: 'x' }] } }
    const { taskId } = await node.call('agent_query', { agent_id: 'booking', method: 'SendMessage', params })
    const asked = await node.until(taskId, 'input_required')
    expect(asked.inputRequests?.[onlyKey(asked)]?.params.message).toBe('why?')
  })

  test.each([
    ['without forms', capabilities()],
    ['with links only', capabilities({ elicitation: { url: {} } })],
    ['without tasks and forms', { 'io.modelcontextprotocol/clientCapabilities': {} }],
  ])('M20 - a client %s gets the reply of the agent as the result', async (_name, meta) => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node({ afterMs: 60_000 })
    const result = await node.call('agent_send', SEND, { meta })
    expect(result).toMatchObject({ resultType: 'complete', structuredContent: { reply: { id: 't1' } } })
  })

  test('M20 - a status of a task that waits for input is a result: nobody was asked', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node({ afterMs: 60_000 })
    const args = { agent_id: 'booking', method: 'tasks/get', params: { id: 't1' } }
    expect(await node.call('agent_query', args)).toMatchObject({ resultType: 'complete', isError: false })
  })

  test('M20 - a user who declines ends the call, and the task of the agent still waits', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { taskId } = await node.call('agent_send', SEND)
    const key = onlyKey(await node.until(taskId, 'input_required'))
    await node.ask('tasks/update', { taskId, inputResponses: { [key]: { action: 'decline' } } })
    const { result } = await node.until(taskId, 'completed')
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^INPUT_DECLINED: /) }] })
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - an answer that is not one is -32602, and the task still waits', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { taskId } = await node.call('agent_send', SEND)
    const key = onlyKey(await node.until(taskId, 'input_required'))
    for (const inputResponses of [{ [key]: 5 }, { [key]: { action: 'shrug' } }, [], undefined]) {
      const { error } = await node.ask('tasks/update', { taskId, inputResponses })
      expect([inputResponses, error?.code]).toEqual([inputResponses, -32602])
    }
    expect(await node.get(taskId)).toMatchObject({ status: 'input_required' })
  })

  test('M20 - two answers at the same time continue the call once', async () => {
    const host = await startAskingAgent(asking('for how many?'), reply({ kind: 'message', parts: [] }))
    const nodes = [await host.node(), await host.node()]
    const { taskId } = await nodes[0]!.call('agent_send', SEND)
    const key = onlyKey(await nodes[0]!.until(taskId, 'input_required'))
    const inputResponses = { [key]: { action: 'accept', content: { answer: '4' } } }
    const answers = [...nodes, ...nodes].map((node) => node.ask('tasks/update', { taskId, inputResponses }))
    for (const { error } of await Promise.all(answers)) expect(error).toBeUndefined()
    await nodes[1]!.until(taskId, 'completed')
    expect(host.asked).toHaveLength(2)
  })
})

describe('M20 cancel', () => {
  test('M20 - a task that waits for input is cancelled at the agent', async () => {
    const host = await startAskingAgent(
      asking('for how many?'),
      reply({ kind: 'task', id: 't1', status: { state: 'canceled' } }),
    )
    const node = await host.node()
    const { taskId } = await node.call('agent_send', SEND)
    await node.until(taskId, 'input_required')
    await node.ask('tasks/cancel', { taskId })
    expect(await node.get(taskId)).toMatchObject({ status: 'cancelled' })
    await expect.poll(() => host.asked.length).toBe(2)
    expect(host.asked[1]).toMatchObject({ method: 'tasks/cancel', params: { id: 't1' } })
    // An answer comes too late.
    await node.ask('tasks/update', { taskId, inputResponses: { 'question-1': { action: 'accept' } } })
    expect(await node.get(taskId)).toMatchObject({ status: 'cancelled' })
    expect(host.asked).toHaveLength(2)
  })

  test('M20 - the wait for an agent that has not answered yet ends', async () => {
    const seen = Promise.withResolvers<AbortSignal>()
    const never = Promise.withResolvers<AgentAnswer>()
    const host = await startAskingAgent(({ signal }) => {
      seen.resolve(signal)
      return never.promise
    })
    const node = await host.node()
    const { taskId } = await node.call('agent_send', SEND)
    const signal = await seen.promise
    await node.ask('tasks/cancel', { taskId })
    await expect.poll(() => signal.aborted).toBe(true)
    expect(await node.get(taskId)).toMatchObject({ status: 'cancelled' })
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - a message that continues a known task of the agent is cancelled by its id', async () => {
    const never = Promise.withResolvers<AgentAnswer>()
    const host = await startAskingAgent(
      () => never.promise,
      reply({ kind: 'task', id: 't7', status: { state: 'canceled' } }),
    )
    const node = await host.node()
    const message = { kind: 'message', role: 'user', messageId: 'a', taskId: 't7', parts: [] }
    const args = { agent_id: 'booking', method: 'message/send', params: { message } }
    const { taskId } = await node.call('agent_query', args)
    await node.ask('tasks/cancel', { taskId })
    await expect.poll(() => host.asked[1]).toMatchObject({ method: 'tasks/cancel', params: { id: 't7' } })
  })

  test('M20 - agent_send without blocking never becomes a task', async () => {
    const host = await startAskingAgent(reply({}))
    const node = await host.node({ afterMs: 0 })
    expect(await node.call('agent_send', { ...SEND, blocking: false })).toMatchObject({ resultType: 'complete' })
  })
})
