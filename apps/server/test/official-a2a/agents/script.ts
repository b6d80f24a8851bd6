/** A part of a message or an artifact, in the terms of neither version of the protocol. */
export type Content =
  | { readonly text: string }
  /** Base64. */
  | { readonly bytes: string; readonly name: string; readonly mediaType: string }
  | { readonly uri: string; readonly name: string; readonly mediaType: string }
  | { readonly data: Readonly<Record<string, unknown>> }

export type State = 'submitted' | 'working' | 'completed' | 'failed' | 'canceled' | 'rejected' | 'input-required'

/** One thing that an agent does while it executes a request. */
export type Step =
  | { readonly step: 'message'; readonly parts: readonly Content[] }
  | { readonly step: 'echo' }
  | { readonly step: 'task'; readonly state: State }
  | { readonly step: 'status'; readonly state: State; readonly says?: string }
  | {
      readonly step: 'artifact'
      readonly id: string
      readonly parts: readonly Content[]
      readonly append: boolean
      readonly last: boolean
    }
  | { readonly step: 'pause'; readonly ms: number }
  /** Waits for a release or a cancellation. */
  | { readonly step: 'hold' }
  | { readonly step: 'throw'; readonly reason: string }

/** The text of a message that the agents refuse as a content type that they do not support. */
export const UNWANTED = 'content-type'

const COMPLETED: Step = { step: 'status', state: 'completed', says: 'done' }
const STARTED: readonly Step[] = [
  { step: 'task', state: 'submitted' },
  { step: 'status', state: 'working', says: 'on it' },
]

const FILES: readonly Content[] = [
  { text: 'a report' },
  { bytes: 'UmVwb3J0IMOk', name: 'report.txt', mediaType: 'text/plain' },
  { uri: 'https://files.example/picture.png', name: 'picture.png', mediaType: 'image/png' },
  { data: { rows: [1, 2.5, null], nested: { ok: true, text: 'ä\u2028' } } },
]

function chunk(text: string, { append, last }: { readonly append: boolean; readonly last: boolean }): Step {
  return { step: 'artifact', id: 'answer', parts: [{ text }], append, last }
}

const FEW: readonly Step[] = [
  chunk('part one, ', { append: false, last: false }),
  chunk('part two', { append: true, last: true }),
]

const SCRIPTS: Readonly<Record<string, readonly Step[]>> = {
  message: [{ step: 'message', parts: [{ text: 'hello' }] }],
  echo: [{ step: 'echo' }],
  work: [...STARTED, ...FEW, COMPLETED],
  files: [...STARTED, { step: 'artifact', id: 'files', parts: FILES, append: false, last: true }, COMPLETED],
  hold: [...STARTED, { step: 'hold' }, ...FEW, COMPLETED],
  ask: [...STARTED, { step: 'status', state: 'input-required', says: 'which one?' }],
  reject: [
    { step: 'task', state: 'submitted' },
    { step: 'status', state: 'rejected', says: 'no' },
  ],
  fail: [{ step: 'throw', reason: 'out of coal' }],
  late: [
    { step: 'pause', ms: 200 },
    { step: 'message', parts: [{ text: 'sorry' }] },
  ],
  many: [
    ...STARTED,
    ...Array.from({ length: 60 }, (_, i) => chunk(`${i} `, { append: i > 0, last: i === 59 })),
    COMPLETED,
  ],
}

/** The answer to a follow-up in a task that asked for input. A task comes first: agents of A2A 1.0 must begin with one. */
const FOLLOW_UP: readonly Step[] = [{ step: 'task', state: 'working' }, ...FEW, COMPLETED]

/** Returns the steps that a message asks for by its text. */
export function script(text: string, { isFollowUp }: { readonly isFollowUp: boolean }): readonly Step[] {
  return isFollowUp ? FOLLOW_UP : (SCRIPTS[text] ?? [{ step: 'throw', reason: `no script ${text}` }])
}
