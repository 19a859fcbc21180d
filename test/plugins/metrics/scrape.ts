import type { TestGateway } from '../../support/gateway.ts'

export interface Scrape {
	type: string
	text: string
	/** By name and labels, such as `svc_runs_total{outcome="completed"}`. */
	samples: Map<string, number>
	/** Of one sample; undefined where there is none. */
	get(series: string): number | undefined
}

/** Reads the metrics as Prometheus does. Throws where a line is none that it takes, or a series comes twice. */
export async function scrape(gateway: Pick<TestGateway, 'request'>, accept = ''): Promise<Scrape> {
	const reply = await gateway.request<string>('GET', '/metrics', { headers: { accept } })
	if (reply.status !== 200) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
	const samples = new Map<string, number>()
	const types = new Map<string, string>()
	for (const line of reply.body.split('\n')) {
		const [, kind, about, rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
		if (kind === 'TYPE') {
			if (about === undefined || types.has(about)) throw new Error(`twice: ${line}`)
			types.set(about, rest)
		}
		if (line === '' || line.startsWith('# ')) continue
		const [, name = '', labels = '', value = ''] =
			/^([a-z][a-z0-9_]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? ([-+.0-9e]+|\+Inf|NaN)$/.exec(line) ?? []
		if (name === '') throw new Error(`no sample: ${line}`)
		const family = [name, name.replace(/_(bucket|sum|count|total)$/, '')].find((one) => types.has(one))
		if (family === undefined) throw new Error(`of no known type: ${line}`)
		if (samples.has(name + labels)) throw new Error(`twice: ${line}`)
		samples.set(name + labels, Number(value))
	}
	return {
		type: reply.headers.get('content-type') ?? '',
		text: reply.body,
		samples,
		get: (series) => samples.get(series),
	}
}
