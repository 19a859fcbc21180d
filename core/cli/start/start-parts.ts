/** The modules that core/main.ts loads once it handles errors. One import keeps them in one file of the bundle. */
export { boot } from '../../boot.ts'
export { homeFolder } from '../../host/config.ts'
export { isFault } from '../../errors.ts'
export { handedSockets } from './handed-sockets.ts'
export { removeRuntimeFile } from '../../process/runtime-file.ts'
export { serviceManager } from './service-manager.ts'
export { startupBanner } from './startup-banner.ts'
export { releaseStartMemory } from './start-memory.ts'
