export interface TracingSettings {
	/** Null: the address in the environment, or none. */
	endpoint: string | null
	/** 0 to 1. */
	sample_ratio: number
	content: boolean
}

/** Since the start of the plugin. */
export interface SpanCounts {
	sent: number
	/** The collector did not accept them, or too many were waiting. */
	dropped: number
}

declare module '../../config/types.ts' {
	interface Config {
		tracing: TracingSettings
	}
}
