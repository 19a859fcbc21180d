/** The address and attributes of the exporter, from gateway.yaml and OpenTelemetry's environment variables. */
import { Fault } from '../../core/errors.ts'
import type { TracingSettings } from './contract.ts'

export interface Collector {
	/** With its path, such as `http://127.0.0.1:4318/v1/traces`. */
	url: string
	/** May contain secrets. */
	headers: Record<string, string>
	/** Milliseconds for which an ended span waits, so that several are sent together. */
	delay_ms: number
	/** Time limit for delivering a batch, retries included. */
	timeout_ms: number
	/** Attributes of the sender. */
	resource: Record<string, string>
}

const PATH = '/v1/traces'
const SERVICE = 'agent-gateway'
const DELAY_MS = 2_000
const TIMEOUT_MS = 5_000
const TIME_LIMIT_MS = 60_000
/** Headers, and attributes of the sender. */
const PAIRS_LIMIT = 64

/** Null if tracing is off. Throws `config_invalid` for an invalid address. */
export function collectorOf(
	{ endpoint }: Pick<TracingSettings, 'endpoint'>,
	env: Readonly<NodeJS.ProcessEnv>,
	version: string,
): Collector | null {
	if (endpoint === null && (env.OTEL_SDK_DISABLED === 'true' || env.OTEL_TRACES_EXPORTER === 'none')) return null
	const whole = endpoint === null ? env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT : undefined
	const base = endpoint ?? env.OTEL_EXPORTER_OTLP_ENDPOINT
	const url = whole ? addressOf(whole) : base ? withPath(addressOf(base)) : null
	if (url === null) return null
	const { OTEL_EXPORTER_OTLP_HEADERS: all, OTEL_EXPORTER_OTLP_TRACES_HEADERS: ofTraces } = env
	return {
		url: url.href,
		headers: { ...pairsIn(all), ...pairsIn(ofTraces) },
		delay_ms: millisecondsIn(env.OTEL_BSP_SCHEDULE_DELAY, DELAY_MS),
		timeout_ms: millisecondsIn(env.OTEL_EXPORTER_OTLP_TIMEOUT, TIMEOUT_MS),
		resource: {
			'service.name': SERVICE,
			'service.version': version,
			...pairsIn(env.OTEL_RESOURCE_ATTRIBUTES),
			...(env.OTEL_SERVICE_NAME && { 'service.name': env.OTEL_SERVICE_NAME }),
		},
	}
}

function addressOf(text: string): URL {
	const url = URL.parse(text)
	if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return url
	// The message does not repeat the address, which may contain a password.
	throw new Fault(
		'config_invalid',
		'tracing.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT, must be an address such as http://127.0.0.1:4318',
	)
}

function millisecondsIn(text = '', otherwise: number): number {
	return /^[1-9]\d{0,5}$/.test(text) ? Math.min(Number(text), TIME_LIMIT_MS) : otherwise
}

function withPath(url: URL): URL {
	if (!url.pathname.endsWith(PATH)) url.pathname = url.pathname.replace(/\/$/, '') + PATH
	return url
}

/** `a=1,b=2`, with values that may be percent-encoded. Anything else is skipped. */
function pairsIn(text = ''): Record<string, string> {
	const pairs = text.split(',', PAIRS_LIMIT).flatMap((pair): [string, string][] => {
		const [, name, value] = /^\s*([^\s=]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
		return name === undefined || value === undefined ? [] : [[name, decoded(value)]]
	})
	return Object.fromEntries(pairs)
}

function decoded(value: string): string {
	try {
		return decodeURIComponent(value)
	} catch {
		return value
	}
}
