/** What core/main.ts loads once it handles errors, by one import: so the bundle has all of it in one file. */
export { boot } from '../../boot.ts'
export { homeFolder } from '../../host/config.ts'
export { isFault } from '../../errors.ts'
export { handedSockets } from './handed-sockets.ts'
export { removeRuntimeFile } from '../../process/runtime-file.ts'
export { serviceManager } from './service-manager.ts'
export { startupBanner } from './startup-banner.ts'
export { releaseStartMemory } from './start-memory.ts'
