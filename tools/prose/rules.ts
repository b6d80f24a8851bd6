import type { Passage, PassageKind } from './passage.ts'

export interface Finding {
  /** The index in the passage's text. */
  readonly index: number
  readonly found: string
}

export interface Rule {
  readonly id: string
  /** What to write instead. */
  readonly message: string
  /** The passages that the rule checks; all of them by default. */
  readonly applies?: (passage: Passage, path: string) => boolean
  readonly find: (passage: Passage) => Iterable<Finding>
}

const MOST_LINES = 5
const WIDEST = 110
const CONTRIBUTOR_PAGES = /^docs\/(?:decisions\/|(?:architecture|contributing|releasing)\.md$)/
const START = String.raw`(?:^|[.:!|—] |@(?:returns|throws|default) (?:\w+ )?|@param \w+ )`

const PHRASES: readonly (readonly [id: string, pattern: string, message: string])[] = [
  [
    'told',
    String.raw`\b(?:tell|tells|told|telling)\b`,
    'use "report", "notify", "show" or "distinguish"; say who does it',
  ],
  [
    'none-of-it',
    String.raw`\b(?:none|nothing) of (?:it|them|this|that)\b|\ball of it\b`,
    'name the thing: "has no lease", "stores no message"',
  ],
  ['beside', String.raw`\bbesides?\b`, 'use "next to", "with" or "in addition to"'],
  ['by-itself', String.raw`\b(?:by|of) (?:itself|themselves|oneself)\b`, 'use "automatically" or "alone"'],
  ['is-had', String.raw`\b(?:is|are|was|were|be|been|can be) had\b`, 'use "is available" or the active voice'],
  [
    'stands',
    String.raw`\b(?:stand|stands|stood|standing)\b(?! for\b)`,
    'use "is", "is listed", "applies" or "remains"',
  ],
  ['whoever', String.raw`\b(?:whoever|whomever|whatever)\b`, 'use the noun: "the caller that", "any value that"'],
  [
    'what-clause',
    String.raw`${START}[Ww]hat\b(?! is (?:new|next)\b)[^.?!]*(?=[.!]|$)|\b(?:of|from|for|with|to|by|on|in|than|all|but|beyond|and|as) what\b(?![^.!]*\?)`,
    'use a noun for the "what" clause: "the values", "the rest", "the stored messages"',
  ],
  ['that-which', String.raw`\b(?:that|those|these) which\b|\ball that\b`, 'use the noun: "every message that"'],
  [
    'who-clause',
    String.raw`${START}[Ww]ho (?!is \w+\?)[^.?!]*(?=[.!]|$)|\b(?:of|from|for|with|to|by|on|and|knows|says|decides) who\b(?![^.!]*\?)`,
    'use "the caller", "the subscriber", "the policy", "permission"',
  ],
  [
    'somebody',
    String.raw`\b(?:somebody|someone|anybody|anyone|nobody|everybody)\b|\bno one\b`,
    'use the noun: "a caller", "a subscriber", "no node"',
  ],
  ['house', String.raw`\b(?:house|houses|room|rooms|tenant|lodger)\b`, 'use "package", "server", "project" or "space"'],
  [
    'give-back',
    String.raw`\b(?:give|gives|gave|given|giving) (?:\w+ ){0,2}?back\b`,
    'use "reject (nack)", "return" or "release"',
  ],
  [
    'take-message',
    String.raw`\b(?:take|takes|took|taken|taking) (?:a |an |the |its |one |another |each |every )?(?:messages?|events?|commands?|queries)\b`,
    'use "receive" or "accept"',
  ],
  ['let-go', String.raw`\b(?:let|lets|letting) (?:\w+ ){0,2}?go\b`, 'use "release" or "close"'],
  ['ground', String.raw`\bgrounds?\b`, 'use "context", "reason" or the thing itself'],
  ['roster', String.raw`\brosters?\b`, 'use "ordered set" or "list"'],
  ['books', String.raw`\bbook(?:s|keeping|-keeping)?\b`, 'use "records", "counts" or "state"'],
  [
    'of-its-own',
    String.raw`\b(?:an?|no|any|each|every|\w+s) (?:[\w-]+ ){0,2}?of (?:its|their|his|one's|our|your) own\b`,
    'use "its own …", "a separate …" or "a dedicated …"',
  ],
  ['of-ours', String.raw`\bof (?:ours|theirs|yours|his)\b`, 'name the owner: "no Signalbox package"'],
  ['for-good', String.raw`\bfor good\b`, 'use "permanently"'],
  ['figures', String.raw`\bfigures?\b`, 'use "measurement", "counter", "value" or "metric"'],
  ['pulse', String.raw`\bpulses?\b`, 'use "timer" or "tick"'],
  [
    'turn',
    String.raw`\b(?:a|one|same|each|every|this|next|longest|the) turn\b`,
    'use "tick" for the event loop, "round" otherwise',
  ],
  ['on-lease', String.raw`\bon lease\b|\bheld out\b|\bout on\b`, 'use "leased" or "under a lease"'],
  ['handed', String.raw`\b(?:is|are|was|were|be|been) handed\b`, 'use "receives"; say who passes it'],
  [
    'group-member',
    String.raw`\bgroup(?:'s)? members?\b|\bmembers? of (?:a|the|its|that|this|one) (?:\w+ )?group\b`,
    'use "subscriber of the group"',
  ],
]

/** Every rule, in the order of the documentation. */
export const RULES: readonly Rule[] = [
  ...PHRASES.map(([id, pattern, message]) => phrase(id, pattern, message)),
  {
    id: 'doc-start',
    message: 'start the doc comment with a verb (function) or a noun phrase (type)',
    applies: ofKind('doc comment'),
    find: ({ text }) => matches(text, /^\s*(?:How|What|Whether|That|Who|Whose|Which|Where|Why)\b/g),
  },
  {
    id: 'decision-id',
    message: 'say the behavior; decision ids are for docs/decisions, tests and inner comments',
    applies: (passage, path) =>
      passage.exported
        ? /^packages\/[^/]+\/src\//.test(path)
        : path.startsWith('docs/') && !CONTRIBUTOR_PAGES.test(path),
    find: ({ text }) => matches(text, /\b(?:A|C|E|J|M|R|S|CL-|CE-)\d{1,2}\b/g),
  },
  {
    id: 'line-width',
    message: `break lines at about 100 characters, at most ${WIDEST}`,
    applies: ofKind('paragraph'),
    find: function* (passage) {
      let index = 0
      for (const { text, column } of passage.fragments) {
        const visible = text.replaceAll(/\]\([^)]*\)/g, ']')
        if (column - 1 + visible.length > WIDEST) {
          yield { index, found: `${column - 1 + visible.length} characters` }
          return
        }
        index += text.length + 1
      }
    },
  },
  {
    id: 'paragraph-length',
    message: `split the paragraph; the most is ${MOST_LINES} lines`,
    applies: (passage, path) => passage.kind === 'paragraph' && /(?:^|\/)(?:docs\/|README\.md$)/.test(path),
    find: ({ fragments }) => (fragments.length > MOST_LINES ? [{ index: 0, found: `${fragments.length} lines` }] : []),
  },
]

function phrase(id: string, pattern: string, message: string): Rule {
  const expression = new RegExp(pattern, 'gi')
  return { id, message, find: ({ text }) => matches(text, expression) }
}

function ofKind(kind: PassageKind): (passage: Passage) => boolean {
  return (passage) => passage.kind === kind
}

function* matches(text: string, expression: RegExp): Iterable<Finding> {
  for (const match of text.matchAll(expression)) yield { index: match.index, found: match[0].trim().slice(0, 60) }
}
