import type { Tags } from '@signalbox/broker-core'

const NO_TAGS: Tags = Object.freeze({})

/** Tags as they are stored: JSON, or nothing when there are none. */
export function tagsJson(tags: Tags): string {
  return Object.keys(tags).length === 0 ? '' : JSON.stringify(tags)
}

export function parseTags(json: string): Tags {
  if (json === '') return NO_TAGS
  const tags: Tags = JSON.parse(json)
  return tags
}
