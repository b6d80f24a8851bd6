/** The settings of channels: the entries that operators write, and those of a file. */
export { ChannelSettingsError, parseChannelSettingsSteps } from './settings-file.ts'
export { ChannelSettingsLog, MAX_ENTRIES } from './settings-log.ts'
export { StoredPauses } from './stored-pauses.ts'
export type { SettingsLogOptions, StoredSettings } from './settings-log.ts'
