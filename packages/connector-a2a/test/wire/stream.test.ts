import { expect, test } from 'vitest'

import { StreamTranslation, UntranslatableError } from '../../src/wire/index.ts'

const TASK_10 = { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } }
const TASK_03 = { kind: 'task', id: 't', contextId: 'c', status: { state: 'submitted' } }

test('A2A versions - streams: the events of an agent of 1.0 reach a caller of 0.3 one by one', () => {
  const stream = new StreamTranslation('1.0', '0.3')
  expect(stream.next(TASK_10)).toEqual([TASK_03])
  expect(stream.next(status10('TASK_STATE_WORKING'))).toEqual([status03('working', false)])
  expect(stream.next(artifact10())).toEqual([artifact03()])
  expect(stream.next(status10('TASK_STATE_COMPLETED'))).toEqual([status03('completed', true)])
  expect(stream.end()).toEqual([])
})

test('A2A versions - streams: a status that waits for input is final in 0.3 if the stream ends after it', () => {
  const stream = new StreamTranslation('1.0', '0.3')
  expect(stream.next(TASK_10)).toEqual([TASK_03])
  expect(stream.holds).toBe(false)
  expect(stream.next(status10('TASK_STATE_INPUT_REQUIRED'))).toEqual([])
  expect(stream.holds).toBe(true)
  expect(stream.end()).toEqual([status03('input-required', true)])
  expect(stream.holds).toBe(false)
  expect(stream.end()).toEqual([])
})

test('A2A versions - streams: a status that waits for input is not final in 0.3 if the stream goes on', () => {
  const stream = new StreamTranslation('1.0', '0.3')
  const waits = 'TASK_STATE_INPUT_REQUIRED'
  expect(stream.next(status10(waits))).toEqual([])
  expect(stream.next(artifact10())).toEqual([status03('input-required', false), artifact03()])
  expect(stream.next(status10(waits))).toEqual([])
  expect(stream.next(status10(waits))).toEqual([status03('input-required', false)])
  expect(stream.end()).toEqual([status03('input-required', true)])
})

test('A2A versions - streams: a caller of 0.3 learns at once that a task waits for credentials', () => {
  const stream = new StreamTranslation('1.0', '0.3')
  expect(stream.next(status10('TASK_STATE_AUTH_REQUIRED'))).toEqual([status03('auth-required', false)])
  expect(stream.next(status10('TASK_STATE_WORKING'))).toEqual([status03('working', false)])
  expect(stream.end()).toEqual([])
})

test('A2A versions - streams: a caller of 1.0 gets the events of an agent of 0.3 without kind and final', () => {
  const stream = new StreamTranslation('0.3', '1.0')
  expect(stream.next(TASK_03)).toEqual([TASK_10])
  expect(stream.next(artifact03())).toEqual([artifact10()])
  expect(stream.next(status03('input-required', true))).toEqual([status10('TASK_STATE_INPUT_REQUIRED')])
  expect(stream.end()).toEqual([])
})

test('A2A versions - streams: a caller of 1.0 gets a task first, also if the agent starts with an update', () => {
  const cases: [unknown, unknown, string][] = [
    [status03('submitted', false), status10('TASK_STATE_SUBMITTED'), 'TASK_STATE_SUBMITTED'],
    [status03('working', false), status10('TASK_STATE_WORKING'), 'TASK_STATE_WORKING'],
    [status03('completed', true), status10('TASK_STATE_COMPLETED'), 'TASK_STATE_WORKING'],
    [artifact03(), artifact10(), 'TASK_STATE_WORKING'],
  ]
  for (const [event03, event10, state] of cases) {
    const stream = new StreamTranslation('0.3', '1.0')
    expect(stream.next(event03)).toEqual([{ task: { id: 't', contextId: 'c', status: { state } } }, event10])
    expect(stream.next(event03)).toEqual([event10])
    expect(stream.end()).toEqual([])
  }
})

test('A2A versions - streams: a message needs no task before it', () => {
  const stream = new StreamTranslation('0.3', '1.0')
  expect(stream.next({ kind: 'message', messageId: 'm', role: 'agent', parts: [] })).toEqual([
    { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [] } },
  ])
})

test('A2A versions - streams: a result that is no event is refused', () => {
  expect(() => new StreamTranslation('1.0', '0.3').next({ answer: 1 })).toThrow(UntranslatableError)
  expect(() => new StreamTranslation('0.3', '1.0').next({ kind: 'progress' })).toThrow(
    new UntranslatableError(
      'result.kind is "progress"; it must be one of "task", "message", "status-update", "artifact-update"',
    ),
  )
})

test('A2A versions - streams: events of the same version pass as they are', () => {
  const stream = new StreamTranslation('0.3', '0.3')
  const event = { kind: 'own', x: 1 }
  expect(stream.next(event)[0]).toBe(event)
  expect(stream.end()).toEqual([])
})

function status10(state: string): object {
  return { statusUpdate: { taskId: 't', contextId: 'c', status: { state } } }
}

function status03(state: string, final: boolean): object {
  return { kind: 'status-update', taskId: 't', contextId: 'c', status: { state }, final }
}

function artifact10(): object {
  return { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } } }
}

function artifact03(): object {
  const artifact = { artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] }
  return { kind: 'artifact-update', taskId: 't', contextId: 'c', artifact }
}
