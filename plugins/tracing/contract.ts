export interface TracingSettings {
	/** Null: none, unless the environment names one. */
	endpoint: string | null
	/** 0 to 1. */
	sample_ratio: number
	content: boolean
}

/** Since the start of the plugin. */
export interface SpanCounts {
	sent: number
	/** No collector took them, or too many waited for it. */
	dropped: number
}

export interface Tracing {
	/** Undefined where nothing is traced. */
	stats(): SpanCounts | undefined
}

declare module '../../core/plugin.ts' {
	interface Services {
		tracing: Tracing
	}
}
