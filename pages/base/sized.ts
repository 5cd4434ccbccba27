// Drawing that is repeated when the window changes its size.
import { useEffect } from 'preact/hooks';

/** Calls `draw` after the first drawing, when one of `inputs` changes, and when the window changes its size. */
export function useEachSize(draw: () => void, inputs: unknown[]): void {
  useEffect(() => {
    draw();
    window.addEventListener('resize', draw);
    return () => window.removeEventListener('resize', draw);
  }, inputs);
}
