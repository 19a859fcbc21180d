import type { Scored } from './best.ts'
import type { Graph } from './graph.ts'
import type { Vectors } from './vectors.ts'

/** What a candidate from the graph costs, in comparisons with a vector. */
const GRAPH_COST = 8
/** How many times as many candidates as needed are taken from the graph where only some are allowed. */
const SPARE = 1.5

export interface NearestQuery {
	query: Float32Array
	/** With the query. */
	cosine: (ordinal: number) => number
	most: number
	/** The least cosine. */
	floor: number
	/** Only these; absent: any. */
	allowed?: ReadonlySet<number> | undefined
}

/**
 * The nearest vectors, in no order. Without a graph all are compared. Where only some are allowed, the graph is asked
 * for so many that enough of those should be among them; if that costs more than comparing each allowed one, or too few are,
 * each allowed one is compared.
 */
export function nearest(
	vectors: Vectors,
	graph: Graph | undefined,
	{ query, cosine, most, floor, allowed }: NearestQuery,
): readonly Scored[] {
	if (!graph) return vectors.scan(cosine, most, floor, allowed)
	if (!allowed) return vectors.scan(cosine, most, floor, graph.near(query, most))
	const asked = Math.ceil((most * SPARE * vectors.count) / Math.max(1, allowed.size))
	if (asked * GRAPH_COST < allowed.size) {
		const found = graph.near(query, asked).filter((ordinal) => allowed.has(ordinal))
		if (found.length >= most) return vectors.scan(cosine, most, floor, found)
	}
	return vectors.scan(cosine, most, floor, allowed)
}
