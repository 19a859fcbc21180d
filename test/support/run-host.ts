import type { RunHost } from '../../core/runs/run-pool.ts'

/** The main thread's side of a run: ignores its events, grants every slot, and has no tools. */
export const runHost: RunHost = {
	event: () => {},
	stream: () => {},
	sent: () => {},
	reserve: () => Promise.resolve(null),
	slot: () => Promise.resolve(null),
	leave_slot: () => Promise.resolve(null),
	model: () => Promise.resolve(null),
	remark: () => Promise.resolve(null),
	tool: () => Promise.reject(new Error('no tool is expected')),
	blob: () => Promise.resolve(null),
}
