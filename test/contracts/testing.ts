/** What the tests of plugins import as `svc-gateway/testing`. */
export { checkChannel } from './channel.ts'
export type { ChannelSuite, ShownMessage, TestChat, TestPlatform } from './channel.ts'
export { startPlugin } from './plugin.ts'
export type { PluginUnderTest } from './plugin.ts'
