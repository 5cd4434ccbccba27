// What has to be done anew where the window takes another size.
import { useEffect } from 'preact/hooks';

/** Does it once drawn, whenever one of `inputs` changes, and at each size of the window. */
export function useEachSize(draw: () => void, inputs: unknown[]): void {
  useEffect(() => {
    draw();
    window.addEventListener('resize', draw);
    return () => window.removeEventListener('resize', draw);
  }, inputs);
}
