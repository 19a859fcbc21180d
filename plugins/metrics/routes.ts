import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { scoped } from '../shared/scopes.ts'
import type {} from '../auth/contract.ts'
import type { Metrics } from './contract.ts'

export function routes(server: Server, metrics: Metrics): void {
	server.route({
		method: 'GET',
		path: '/metrics',
		options: {
			description: 'Metrics for Prometheus',
			notes: [
				'In the text format of Prometheus, or in OpenMetrics if the header Accept prefers it.',
				'A local caller needs no token, not even in token mode.',
			],
			tags: ['api', 'gateway'],
			auth: scoped('events:read'),
			plugins: { auth: { local: true }, openapi: { produces: 'text/plain' } },
			response: { status: { 200: Joi.string().example('svc_runs_total{outcome="completed",trigger="api"} 3\n') } },
		},
		handler: async (request, h) => {
			const { accept = '' } = request.raw.req.headers
			const { type, text } = await metrics.scrape(accept)
			return h.response(text).type(type)
		},
	})
}
