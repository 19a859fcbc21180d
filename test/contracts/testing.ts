/** The exports of `svc-gateway/testing`, for the tests of plugins. */
export { checkChannel } from './channel.ts'
export type { ChannelSuite, ShownMessage, TestChat, TestPlatform } from './channel.ts'
export { startPlugin } from './plugin.ts'
export type { PluginUnderTest } from './plugin.ts'
