import { messageOf, readSmallFile } from '@signalbox/broker-core/internal'
import type { EventTypeOptions } from '@signalbox/connector-mcp/events'
import { eventWebhookFormat } from '@signalbox/connector-mcp/events'
import { argumentProblems, isJsonObject, problemsText } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import { Compile } from 'typebox/schema'

import { ServerError } from '../errors.ts'
import { parseYamlAside } from '../files/yaml.ts'

const EventTypeSchema = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    channel: Type.String(),
    channelType: Type.Optional(Type.Enum(['events_store', 'events'])),
    payloadSchema: Type.Unsafe<EventTypeOptions['payloadSchema']>({ type: 'object' }),
  },
  { additionalProperties: false },
)

/**
 * Reads the event types of operators.
 * @param file A file with an array of types, in YAML or JSON
 * @throws ServerError CONFIG_INVALID
 */
export async function readEventTypes(file: string): Promise<readonly EventTypeOptions[]> {
  try {
    const types = typesIn(await parseYamlAside((await readSmallFile(file)).text))
    // The connector reports types that are not valid together.
    eventWebhookFormat(types)
    return types
  } catch (error) {
    throw new ServerError('CONFIG_INVALID', [`connectors.mcp.eventTypesFile: ${file}: ${messageOf(error)}`], {
      cause: error,
    })
  }
}

function typesIn(parsed: Awaited<ReturnType<typeof parseYamlAside>>): readonly EventTypeOptions[] {
  if ('problem' in parsed) throw new RangeError(`it is not YAML: ${parsed.problem}`)
  const { value } = parsed
  if (!Array.isArray(value)) throw new RangeError('it is not an array of event types')
  const eventType = Compile(EventTypeSchema)
  return value.map((each: unknown, i) => {
    if (eventType.Check(each)) return each
    const problems = isJsonObject(each)
      ? problemsText(argumentProblems(EventTypeSchema, each, 'event type'))
      : 'it is not an object'
    throw new RangeError(`event type ${i + 1}: ${problems}`)
  })
}
