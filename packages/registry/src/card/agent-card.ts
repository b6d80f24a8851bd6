import type { Static } from 'typebox'
import { Type } from 'typebox'

import { AgentInstanceSchema, INSTANCE_ID_FORM } from './agent-instance.ts'

/** The form of an agent_id: 2 to 128 characters of a-z, 0-9 and -; no - at the beginning or the end. */
export const AGENT_ID_PATTERN = '^[a-z0-9][a-z0-9-]{0,126}[a-z0-9]$'

/** The maximum length of a url, in characters. */
const MAX_URL_CHARACTERS = 2048

const AGENT_ID = new RegExp(AGENT_ID_PATTERN)

/** Returns true for a valid agent_id. */
export function isAgentId(id: string): boolean {
  return AGENT_ID.test(id)
}

function text(maxLength: number) {
  return Type.String({ maxLength, description: `a string of at most ${maxLength} characters` })
}

function requiredText(maxLength?: number) {
  return maxLength === undefined
    ? Type.String({ minLength: 1, description: 'a string that is not empty' })
    : Type.String({ minLength: 1, maxLength, description: `a string of 1 to ${maxLength} characters` })
}

function texts() {
  return Type.Array(Type.String({ description: 'a string' }), { description: 'an array of strings' })
}

function freeForm() {
  return Type.Object({}, { description: 'an object' })
}

/** The specification's table "AgentSkill". Other fields are kept. */
const AgentSkillSchema = Type.Object(
  {
    id: requiredText(),
    name: requiredText(),
    description: Type.Optional(Type.String({ description: 'a string' })),
    tags: Type.Optional(texts()),
  },
  { description: 'a skill: an object with id and name' },
)

/** The specification's table "Agent card", without the fields that the server sets. Other fields are kept. */
export const AgentCardSchema = Type.Object(
  {
    agent_id: Type.String({
      pattern: AGENT_ID_PATTERN,
      description: '2 to 128 characters of a-z, 0-9 and -, neither beginning nor ending with -',
    }),
    name: requiredText(256),
    description: Type.Optional(text(2048)),
    version: Type.Optional(text(64)),
    url: Type.String({
      maxLength: MAX_URL_CHARACTERS,
      description: `an absolute http:// or https:// URL of at most ${MAX_URL_CHARACTERS} characters, without credentials`,
    }),
    capabilities: Type.Optional(freeForm()),
    skills: Type.Optional(Type.Array(AgentSkillSchema, { description: 'an array of skills' })),
    defaultInputModes: Type.Optional(texts()),
    defaultOutputModes: Type.Optional(texts()),
    supportedInterfaces: Type.Optional(Type.Unknown()),
    securitySchemes: Type.Optional(Type.Unknown()),
    security: Type.Optional(Type.Unknown()),
    protocolVersions: Type.Optional(texts()),
    metadata: Type.Optional(freeForm()),
    instance_id: Type.Optional(
      Type.Unknown({
        description: `the instance that registers, if the agent has several: ${INSTANCE_ID_FORM}; the url is the address of this instance`,
      }),
    ),
    agent_card_url: Type.Optional(
      Type.Unknown({
        description:
          'the address of the card that the agent serves; the registry reads it if url is missing, or a2a.liveness is probe',
      }),
    ),
    a2a: Type.Optional(
      Type.Unknown({
        description:
          'options of the registration: { "wire": "1.0" | "0.3" | "auto", "v03": boolean, "credentials": …, "liveness": "heartbeat" | "probe", "durable": boolean, "offline": "refuse" | "queue", "pull": boolean, "queue": {"ttl_seconds", "max_messages", "max_per_caller", "max_attempts"} }; of credentials, cards show the kind alone; with pull, the card has no url',
      }),
    ),
  },
  { description: 'an agent card: a JSON object' },
)

function moment(description: string) {
  return Type.String({ format: 'date-time', description })
}

/** A card as the registry shows it, including the fields that the server sets. */
export const ShownCardSchema = Type.Object(
  {
    ...AgentCardSchema.properties,
    url: Type.Optional(AgentCardSchema.properties.url),
    protocolVersions: texts(),
    registered_by: Type.String({ description: 'the ClientID of the principal that registered the agent and owns it' }),
    registered_at: moment('the time of the first registration'),
    last_seen: moment('the time of the last heartbeat or registration'),
    offline: Type.Optional(
      Type.Literal(true, {
        description: 'the agent has expired; it stays registered, because requests may wait in its inbox',
      }),
    ),
    instances: Type.Optional(
      Type.Array(AgentInstanceSchema, {
        description: 'the instances of an agent that was registered with instance_id, the last one last',
      }),
    ),
  },
  { description: 'an agent card, including the fields that the server sets' },
)

/**
 * The member in which the discovery log keeps the sealed credentials of an agent. It is no tag: nodes of older versions
 * keep the members of a card when they write a heartbeat, and no tags that they do not know.
 */
export const SEALED_MEMBER = 'sealed_credentials'

/** The fields that the server sets. It ignores them in the cards of callers. */
export const SERVER_SET_FIELDS = ['registered_by', 'registered_at', 'last_seen', 'offline', SEALED_MEMBER] as const

export interface AgentSkill extends Readonly<Static<typeof AgentSkillSchema>> {
  readonly tags?: string[]
  readonly [field: string]: unknown
}

type CardFields = Readonly<Omit<Static<typeof AgentCardSchema>, 'skills' | 'url'>>

/** A card as a caller registers it, without the fields that the server sets. */
export interface SubmittedCard extends CardFields {
  /** The address of the agent. A pull agent has a placeholder that never resolves. */
  readonly url: string
  readonly skills?: AgentSkill[]
  readonly [field: string]: unknown
}

/** The fields of a registered card that the server sets, except those that change with every heartbeat. */
interface RegisteredFields extends CardFields {
  readonly skills?: AgentSkill[]
  readonly protocolVersions: string[]
  readonly registered_by: string
  /**
   * The time of the first registration: ISO 8601, UTC, with milliseconds. A new registration of the same
   * agent keeps it.
   */
  readonly registered_at: string
}

/** A card as the discovery log stores it: without `last_seen`, which changes with every heartbeat. */
export interface StoredCard extends RegisteredFields {
  /** The address of the agent. A pull agent has a placeholder that never resolves. */
  readonly url: string
  readonly [field: string]: unknown
}

/**
 * An agent card as the registry shows it. Fields that the registry does not
 * know belong to the agent.
 */
export interface AgentCard extends RegisteredFields {
  /** The address of the agent; absent for a pull agent. */
  readonly url?: string
  /** `true` for an agent that has expired and is parked, because it has an inbox; otherwise absent. */
  readonly offline?: true
  readonly [field: string]: unknown
  /**
   * The time of the last heartbeat or registration: ISO 8601, UTC, with milliseconds. Exact on the node that
   * received it; other nodes learn of it at most every fifth of the TTL.
   */
  readonly last_seen: string
}
