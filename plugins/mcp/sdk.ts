/** The engine, loaded when it is first needed. */
import type * as Engine from './engine.ts'

let engine: Promise<typeof Engine> | undefined

export function loadEngine(): Promise<typeof Engine> {
	return (engine ??= import('./engine.ts'))
}
