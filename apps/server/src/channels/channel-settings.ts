import type { Broker, BrokerHandle, SettingsEntry } from '@signalbox/broker-core'
import { ChannelSettingsError, ChannelSettingsLog, parseChannelSettingsSteps } from '@signalbox/channel-settings'
import { watchFiles } from '@signalbox/http-kit'

import { ServerError } from '../errors.ts'
import { inSlices } from '../files/in-slices.ts'
import type { ParsedYaml } from '../files/yaml.ts'
import type { DisposalStack } from '../lifecycle/disposal-stack.ts'
import type { Logger } from '../logging/logger.ts'

interface ChannelSettingsParts {
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly log: Logger
  readonly opened: DisposalStack
}

/**
 * Opens the channel settings: the entries that operators wrote, and those of a file. Resolves when both are in force.
 * @param file Empty if there is none
 * @throws ServerError CONFIG_INVALID, listing every problem of the file
 */
export async function openChannelSettings(
  file: string,
  { broker, system, log, opened }: ChannelSettingsParts,
): Promise<ChannelSettingsLog> {
  const failed = (error: unknown): void => log.error({ err: error }, 'channel settings not read')
  const settings = opened.use(await ChannelSettingsLog.open(system, broker.settings, { failed, pauses: broker.pauses }))
  if (file === '') return settings
  try {
    opened.use(await followFile(file, settings, log))
  } catch (error) {
    throw new ServerError('CONFIG_INVALID', problemsOf(file, error), { cause: error })
  }
  return settings
}

/** If the file becomes invalid, that is reported and its last valid entries remain in force. */
async function followFile(file: string, settings: ChannelSettingsLog, log: Logger): Promise<Disposable> {
  // Loads the parser only for servers with such a file.
  const { parseYaml, parseYamlAside } = await import('../files/yaml.ts')
  const watched = watchFiles<readonly SettingsEntry[]>([file], {
    parse(texts) {
      const steps = parseChannelSettingsSteps(valueOf(parseYaml(texts.join(''))))
      for (;;) {
        const { done, value } = steps.next()
        if (done) return value
      }
    },
    reparse: async (texts) => inSlices(parseChannelSettingsSteps(valueOf(await parseYamlAside(texts.join(''))))),
    changed(entries) {
      settings.useFile(entries)
      log.info({ file, entries: entries.length }, 'channel settings reloaded')
    },
    refused(error) {
      const problems = problemsOf(file, error)
      log.error({ file, problems }, 'channel settings not reloaded: the previous entries of the file remain in force')
    },
  })
  settings.useFile(watched.value)
  return watched
}

/** @throws ChannelSettingsError */
function valueOf(parsed: ParsedYaml): unknown {
  if ('problem' in parsed) throw new ChannelSettingsError([`it is neither YAML nor JSON: ${parsed.problem}`])
  return parsed.value
}

function problemsOf(file: string, error: unknown): readonly string[] {
  const problems =
    error instanceof ChannelSettingsError ? error.problems : [error instanceof Error ? error.message : String(error)]
  return problems.map((problem) => `channelSettingsFile: ${file}: ${problem}`)
}
