import type { TestGateway } from '../../support/gateway.ts'

export interface Scrape {
	type: string
	text: string
	/** By name and labels, such as `svc_runs_total{outcome="completed"}`. */
	samples: Map<string, number>
	/** The value of one series; undefined if it does not exist. */
	get(series: string): number | undefined
}

/** Reads the metrics as Prometheus does. Throws for an invalid line and a duplicate series. */
export async function scrape(gateway: Pick<TestGateway, 'request'>, accept = ''): Promise<Scrape> {
	const reply = await gateway.request<string>('GET', '/metrics', { headers: { accept } })
	if (reply.status !== 200) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
	const samples = new Map<string, number>()
	const types = new Map<string, string>()
	for (const line of reply.body.split('\n')) {
		const [, kind, about, rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
		if (kind === 'TYPE') {
			if (about === undefined || types.has(about)) throw new Error(`duplicate type: ${line}`)
			types.set(about, rest)
		}
		if (line === '' || line.startsWith('# ')) continue
		const [, name = '', labels = '', value = ''] =
			/^([a-z][a-z0-9_]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? ([-+.0-9e]+|\+Inf|NaN)$/.exec(line) ?? []
		if (name === '') throw new Error(`invalid sample: ${line}`)
		const family = [name, name.replace(/_(bucket|sum|count|total)$/, '')].find((type) => types.has(type))
		if (family === undefined) throw new Error(`sample without a type: ${line}`)
		if (samples.has(name + labels)) throw new Error(`duplicate series: ${line}`)
		samples.set(name + labels, Number(value))
	}
	return {
		type: reply.headers.get('content-type') ?? '',
		text: reply.body,
		samples,
		get: (series) => samples.get(series),
	}
}
