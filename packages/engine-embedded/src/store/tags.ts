import type { Tags } from '@signalbox/broker-core/engine'

import { DamagedRowError } from './sqlite-code.ts'

const NO_TAGS: Tags = Object.freeze({})

/** Returns the stored form of tags: JSON, or an empty text if there are none. */
export function tagsJson(tags: Tags): string {
  return Object.keys(tags).length === 0 ? '' : JSON.stringify(tags)
}

/** Parses stored tags. @throws DamagedRowError */
export function parseTags(json: string): Tags {
  if (json === '') return NO_TAGS
  try {
    const tags: Tags = JSON.parse(json)
    return tags
  } catch (error) {
    throw new DamagedRowError('the tags of a message cannot be read', { cause: error })
  }
}
