import type { CallForm } from '../gateway/call-form.ts'
import { nativeForm } from '../native/native-form.ts'
import { REST_EVENTS } from '../stream/native-events.ts'

/** The form of calls of the HTTP+JSON binding: official calls of A2A 1.0, whose exchange writes the answers. */
export const REST_CALL: CallForm = nativeForm('1.0')

/** The form of streams of the HTTP+JSON binding. */
export const REST_STREAM: CallForm = {
  ...REST_CALL,
  wire: { version: '1.0', answer: 'rest' },
  streamFailures: () => REST_EVENTS,
}
