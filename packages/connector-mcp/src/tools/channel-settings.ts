import { Buffer } from 'node:buffer'

import type { ChannelSettings } from '@signalbox/broker-core'
import { PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import { Type } from 'typebox'

/** The largest schema that is shown, in bytes as JSON: a larger one would fill the context of a model. */
const MAX_SCHEMA_BYTES = 16_384

/** The settings of a channel that its senders need. Absent members are not set. */
interface ShownSettings {
  readonly description?: string
  readonly schema?: {
    /** The version for messages that name none. */
    readonly version: string
    /** Absent if it is large. */
    readonly json_schema?: unknown
    readonly other_versions: readonly string[]
  }
  readonly group_required?: true
  readonly paused_until?: string
}

/** Returns the settings for senders; undefined if there are none. */
export function shownSettings({ description, schema, groups, consumers }: ChannelSettings): ShownSettings | undefined {
  const pause = consumers?.paused_until ?? undefined
  const isPaused = pause !== undefined && Date.parse(pause) > Date.now()
  const shown: ShownSettings = {
    ...(description ? { description } : {}),
    ...(schema === undefined ? {} : { schema: shownSchema(schema) }),
    ...(groups?.mode === 'ordered' ? { group_required: true } : {}),
    ...(isPaused ? { paused_until: pause } : {}),
  }
  return Object.keys(shown).length === 0 ? undefined : shown
}

function shownSchema({ default: version, versions }: NonNullable<ChannelSettings['schema']>) {
  const schema = versions[version]
  const isSmall = Buffer.byteLength(JSON.stringify(schema) ?? '') <= MAX_SCHEMA_BYTES
  const others = Object.keys(versions).filter((name) => name !== version)
  return { version, ...(isSmall ? { json_schema: schema } : {}), other_versions: others }
}

// cspell:ignore partitionkey
/** Returns the settings as sentences for a model. */
export function settingsHint({ description, schema, group_required, paused_until }: ShownSettings): readonly string[] {
  const hints = description === undefined ? [] : [`Description: ${description}`]
  if (schema !== undefined) {
    const { version, json_schema, other_versions } = schema
    const name = JSON.stringify(version)
    hints.push(
      json_schema === undefined
        ? `Bodies must match the JSON Schema ${name}, which is too large to be shown; ask the operator for it.`
        : `Bodies must match the JSON Schema ${name}: ${JSON.stringify(json_schema)}`,
    )
    if (other_versions.length > 0) {
      hints.push(`Other versions, which the tag ce_dataschema of a message selects: ${other_versions.join(', ')}.`)
    }
  }
  if (group_required) hints.push('Messages need a group: set the tag ce_partitionkey or group.')
  if (paused_until !== undefined) {
    const end = Date.parse(paused_until) === PAUSED_UNTIL_RESUMED ? 'an operator resumes it' : paused_until
    hints.push(`Receivers get nothing until ${end}: the queue is paused.`)
  }
  return hints
}

/** The members of the structured content. */
export const channelSettingsOutput = {
  description: Type.Optional(Type.String()),
  // Without its members: lists of tools are limited, and a model reads them in the text.
  schema: Type.Optional(Type.Unsafe<NonNullable<ShownSettings['schema']>>({})),
  group_required: Type.Optional(Type.Boolean()),
  paused_until: Type.Optional(Type.String()),
}
