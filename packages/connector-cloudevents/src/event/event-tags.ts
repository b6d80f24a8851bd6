import type { Tags } from '@signalbox/broker-core'

import { CORE_ATTRIBUTES, isAttributeName } from './attributes.ts'
import type { Attributes, AttributeType } from './attributes.ts'
import type { DataForm } from './data-form.ts'
import { isUnusualForm } from './data-form.ts'

/** Prefix of the tags for attributes: the attribute `x` is the tag `ce_x`. */
const TAG_PREFIX = 'ce_'

/** The tags of the usual attributes. Joining each name again would cost three times as much. */
const TAGS: ReadonlyMap<string, string> = new Map([...CORE_ATTRIBUTES].map((name) => [name, TAG_PREFIX + name]))

/**
 * The tag for details that text alone loses, so that an event leaves unchanged: `name=integer` and `name=boolean` for
 * attributes that are not strings, `data=…` if the data had another form than usual. No attribute can have this name.
 */
export const FORMS_TAG = 'ce_:forms'

/** Returns the tags of the message that carries an event. `form` is the form of its data, if it must be stored. */
export function tagsOf({ texts, types }: Attributes, body: Uint8Array, form?: DataForm): Tags {
  const tags: Record<string, string> = {}
  for (const [name, text] of texts) tags[TAGS.get(name) ?? TAG_PREFIX + name] = text
  let forms = ''
  for (const [name, type] of types) forms += `,${name}=${type}`
  if (form !== undefined && isUnusualForm(form, body, texts.get('datacontenttype'))) forms += `,data=${form}`
  if (forms !== '') tags[FORMS_TAG] = forms.slice(1)
  return tags
}

export interface CarriedEvent {
  readonly attributes: Attributes
  /** The stored form of the data; `undefined` for the usual one. */
  readonly form: DataForm | undefined
  /** Tags that do not belong to the event. */
  readonly otherTags: Tags
}

/**
 * Returns the event of a message, or `undefined` if its tags make no event. Every sender can write tags, so each
 * value is checked.
 */
export function eventOf(tags: Tags): CarriedEvent | undefined {
  if (tags['ce_specversion'] !== '1.0' || !tags['ce_id'] || !tags['ce_source'] || !tags['ce_type']) return undefined
  const texts = new Map<string, string>()
  const otherTags: Record<string, string> = {}
  for (const key of Object.keys(tags)) {
    const value = tags[key] ?? ''
    const name = key.slice(TAG_PREFIX.length)
    if (key.startsWith(TAG_PREFIX) && isAttributeName(name)) texts.set(name, value)
    else if (key !== FORMS_TAG) otherTags[key] = value
  }
  const types = new Map<string, AttributeType>()
  let form: DataForm | undefined
  for (const entry of tags[FORMS_TAG]?.split(',') ?? []) {
    const [name = '', type] = entry.split('=')
    const text = texts.get(name) ?? ''
    if (name === 'data') {
      if (type === 'json' || type === 'text' || type === 'base64') form = type
    } else if (type === 'integer' && isIntegerText(text)) {
      types.set(name, type)
    } else if (type === 'boolean' && (text === 'true' || text === 'false')) {
      types.set(name, type)
    }
  }
  return { attributes: { texts, types }, form, otherTags }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Returns `true` for the JSON text of a whole number. */
export function isIntegerText(text: string): boolean {
  return NUMBER.test(text) && Number.isInteger(Number(text))
}
