import { Buffer } from 'node:buffer'

import type { Authenticator, JsonObject } from '@signalbox/http-kit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import type { McpConnectorOptions } from '../src/index.ts'
import { brokerStateKey } from '../src/index.ts'
import { asking, DONE, expectConversation, formOf, SEND, startAskingAgent } from './asking-agent.ts'
import type { TaskNode } from './task-host.ts'

const FORMS = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
const NO_FORMS = { 'io.modelcontextprotocol/clientCapabilities': {} }

interface Question {
  readonly resultType: string
  readonly inputRequests: Record<string, { readonly params: { readonly message: string } }>
  readonly requestState: string
}

/** Calls `agent_send` as a client with forms and without tasks. */
async function send(node: TaskNode, more: JsonObject = {}, meta: object = FORMS, args: object = SEND) {
  return node.ask('tools/call', { name: 'agent_send', arguments: args, ...more }, { meta })
}

async function question(node: TaskNode): Promise<Question> {
  const { result, error } = await send(node)
  expect(error).toBeUndefined()
  expect(result?.['resultType']).toBe('input_required')
  return result as unknown as Question
}

const answer = (text: string) => ({ question: { action: 'accept', content: { answer: text } } })

describe('M20 a call that asks for input without a task', () => {
  test('M20 - the result has the question and a state, and the repeated call continues the task of the agent', async () => {
    const host = await startAskingAgent(asking('for how many?'), asking('at what time?'), DONE)
    const node = await host.node()
    const first = await question(node)
    expect(first).toEqual({
      resultType: 'input_required',
      inputRequests: { question: formOf('for how many?') },
      requestState: expect.stringMatching(/^[\w-]{43}\.[\w-]+$/),
      _meta: expect.anything(),
    })
    const second = await send(node, { inputResponses: answer('four'), requestState: first.requestState })
    expect(second.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { question: { params: { message: 'at what time?' } } },
    })
    const { requestState = '' } = second.result as { requestState?: string }
    expect(requestState).not.toBe(first.requestState)
    const third = await send(node, { inputResponses: answer('at eight'), requestState })
    expect(third.result).toMatchObject({
      resultType: 'complete',
      isError: false,
      structuredContent: { reply: { status: { state: 'completed' } } },
    })
    expectConversation(host, 'four', 'at eight')
    expect(node.failures).toEqual([])
  })

  test('M20 - another node with the same key continues the call', async () => {
    const host = await startAskingAgent(asking('for how many?'), DONE)
    const options: McpConnectorOptions = { stateKey: brokerStateKey(host.system) }
    const [one, other] = [await host.node({}, options), await host.node({}, options)]
    const { requestState } = await question(one)
    expect((await send(other, { inputResponses: answer('four'), requestState })).result).toMatchObject({
      resultType: 'complete',
    })
    const stranger = await host.node()
    expect(await send(stranger, { inputResponses: answer('four'), requestState })).toMatchObject({
      status: 200,
      error: { code: -32602 },
    })
  })

  test('M20 - nodes that create the key at the same time agree on it', async () => {
    const host = await startAskingAgent(DONE)
    const keys = await Promise.all([1, 2, 3, 4].map(() => brokerStateKey(host.system)()))
    expect(new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size).toBe(1)
  })

  test('M20 - a missing response is asked for again, and responses to other requests are ignored', async () => {
    const host = await startAskingAgent(asking('for how many?'), DONE)
    const node = await host.node()
    const { requestState } = await question(node)
    for (const more of [{}, { inputResponses: {} }, { inputResponses: { other: 5 } }]) {
      const { result } = await send(node, { requestState, ...more })
      expect(result).toMatchObject({ resultType: 'input_required', inputRequests: { question: {} } })
    }
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - a user who declines ends the call with INPUT_DECLINED', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { requestState } = await question(node)
    const { result } = await send(node, { requestState, inputResponses: { question: { action: 'decline' } } })
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^INPUT_DECLINED: /) }] })
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - the state is for one call: other arguments, another tool and a changed state are -32602', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { requestState } = await question(node)
    const inputResponses = answer('four')
    const [mac = '', text = ''] = requestState.split('.')
    const payload = Buffer.from(text, 'base64url').toString().replace('"t1"', '"t2"')
    const changed = `${mac}.${Buffer.from(payload).toString('base64url')}`
    for (const bad of [changed, '', '.', 'x', `${mac}.`, `.${text}`, `${text}.${mac}`, 5, null]) {
      const { status, error } = await send(node, { inputResponses, requestState: bad })
      expect([bad, status, error?.code]).toEqual([bad, 200, -32602])
    }
    const other = await send(node, { inputResponses, requestState }, FORMS, { ...SEND, message: 'book two' })
    expect(other).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('not issued to this caller for this call') },
    })
    const params = { name: 'queue_send', arguments: { channel: 'q', message: 'm' }, inputResponses, requestState }
    const elsewhere = await node.ask('tools/call', params, { meta: FORMS })
    expect(elsewhere).toMatchObject({ error: { code: -32602, message: expect.stringContaining('queue_send') } })
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - the order of members in the arguments does not matter', async () => {
    const host = await startAskingAgent(asking('for how many?'), DONE)
    const node = await host.node()
    const { requestState } = await question(node)
    const args = { message: SEND.message, agent_id: SEND.agent_id }
    const { result } = await send(node, { inputResponses: answer('four'), requestState }, FORMS, args)
    expect(result).toMatchObject({ resultType: 'complete' })
  })

  test('M20 - the state expires after 15 minutes', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { requestState } = await question(node)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 15 * 60_000 + 1_000 })
    onTestFinished(() => void vi.useRealTimers())
    const late = await send(node, { inputResponses: answer('four'), requestState })
    expect(late).toMatchObject({ error: { code: -32602, message: expect.stringContaining('expired') } })
  })

  test('M20 - the state is for one caller', async () => {
    const host = await startAskingAgent(asking('for how many?'), DONE)
    // The caller has the name in its token.
    const authenticator: Authenticator = {
      authenticate: ({ headers }) => ({ clientId: headers.authorization ?? 'nobody' }),
    }
    const node = await host.node({}, { authenticator })
    const as = (clientId: string, more: JsonObject = {}) =>
      node.ask(
        'tools/call',
        { name: 'agent_send', arguments: SEND, ...more },
        { meta: FORMS, headers: { authorization: clientId } },
      )
    const { requestState } = (await as('one')).result as unknown as Question
    const retry = { inputResponses: answer('four'), requestState }
    expect(await as('two', retry)).toMatchObject({ status: 200, error: { code: -32602 } })
    expect(host.asked).toHaveLength(1)
    expect((await as('one', retry)).result).toMatchObject({ resultType: 'complete' })
  })

  test('M20 - a state that is used twice continues the same task of the agent, and calls nothing else', async () => {
    const host = await startAskingAgent(asking('for how many?'), DONE, DONE)
    const node = await host.node()
    const { requestState } = await question(node)
    const retry = { inputResponses: answer('four'), requestState }
    const used = await Promise.all([send(node, retry), send(node, retry)])
    for (const { result } of used) expect(result).toMatchObject({ resultType: 'complete' })
    const [, ...continued] = host.asked
    expect(continued).toHaveLength(2)
    expect(new Set(continued.map(({ params }) => params.message?.taskId))).toEqual(new Set(['t1']))
  })

  test('M20 - responses that are not valid are -32602', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const { requestState } = await question(node)
    for (const inputResponses of [{ question: 5 }, { question: { action: 'shrug' } }, [], 'x', 7]) {
      const { error } = await send(node, { requestState, inputResponses })
      expect([inputResponses, error?.code]).toEqual([inputResponses, -32602])
    }
    expect(host.asked).toHaveLength(1)
  })

  test('M20 - a client that shows no forms any more gets the reply, or -32602 if a response is missing', async () => {
    const host = await startAskingAgent(asking('for how many?'), asking('at what time?'))
    const node = await host.node()
    const { requestState } = await question(node)
    expect(await send(node, { requestState }, NO_FORMS)).toMatchObject({ error: { code: -32602 } })
    const { result } = await send(node, { requestState, inputResponses: answer('four') }, NO_FORMS)
    expect(result).toMatchObject({ resultType: 'complete', structuredContent: { reply: { id: 't1' } } })
  })

  test('M20 - a repeated call may become a task', async () => {
    const host = await startAskingAgent(asking('for how many?'), asking('at what time?'), DONE)
    const node = await host.node({ afterMs: 60_000 })
    const { requestState } = await question(node)
    const both = {
      'io.modelcontextprotocol/clientCapabilities': {
        elicitation: {},
        extensions: { 'io.modelcontextprotocol/tasks': {} },
      },
    }
    const { result } = await send(node, { requestState, inputResponses: answer('four') }, both)
    expect(result).toMatchObject({ resultType: 'task' })
    expect(result).not.toHaveProperty('requestState')
  })

  test('M20 - at the limit of tasks a client with tasks and forms is asked without a task', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node({ maxTasksOf: () => 1 })
    const first = await node.call('agent_send', SEND)
    expect(first.resultType).toBe('task')
    expect(await node.call('agent_send', SEND)).toMatchObject({ resultType: 'input_required' })
  })

  test('M20 - without a key the reply of the agent is the result', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const failing = new Error('no key')
    const node = await host.node({}, { stateKey: () => Promise.reject(failing) })
    expect((await send(node)).result).toMatchObject({
      resultType: 'complete',
      structuredContent: { reply: { id: 't1' } },
    })
    expect(await send(node, { requestState: 'x.y' })).toMatchObject({ error: { code: -32603 } })
    expect(node.failures).toMatchObject([{ cause: failing }, failing])
  })

  test('M20 - the older revisions ignore requestState and never ask', async () => {
    const host = await startAskingAgent(asking('for how many?'))
    const node = await host.node()
    const response = await fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'agent_send', arguments: SEND, requestState: 'x', inputResponses: 5 },
      }),
    })
    const { result } = (await response.json()) as { result: object }
    expect(result).toMatchObject({ isError: false, structuredContent: { reply: { id: 't1' } } })
    expect(result).not.toHaveProperty('resultType')
  })
})
